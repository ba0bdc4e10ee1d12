package arc

import (
	"fmt"
	"strings"
)

// notes gathers what a reader ignores or finds odd, so that each kind is told
// once per corpus and not once per file.
type notes struct {
	order []string
	byKey map[string]*note
}

type note struct {
	text  string // ends with the list of examples
	where []string
	count int
}

// maxNamed is how many places a warning lists before it only counts.
const maxNamed = 5

func (n *notes) add(key, text, where string) {
	if n.byKey == nil {
		n.byKey = make(map[string]*note)
	}
	x := n.byKey[key]
	if x == nil {
		x = &note{text: text}
		n.byKey[key] = x
		n.order = append(n.order, key)
	}
	where = Printable(where)
	if len(x.where) > 0 && x.where[len(x.where)-1] == where {
		return
	}
	x.count++
	if len(x.where) < maxNamed {
		x.where = append(x.where, where)
	}
}

func (n *notes) ignoredKey(key, file string) {
	n.add("key "+key, fmt.Sprintf("ignored the key %.60q", key), file)
}

func (n *notes) otherName(t Task, name string) {
	n.add("name", "ignored a \"name\" that differs from the id, kept the id", fmt.Sprintf("%s (%.60q)", t.ID, name))
}

// warnings returns one line per kind, in the order found.
func (n *notes) warnings() []string {
	var lines []string
	for _, key := range n.order {
		x := n.byKey[key]
		where := strings.Join(x.where, ", ")
		if x.count > len(x.where) {
			where += fmt.Sprintf(" and %d more", x.count-len(x.where))
		}
		lines = append(lines, x.text+": "+where)
	}
	return lines
}
