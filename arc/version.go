package arc

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"hash"
	"sort"
)

// Hash is the version of a task's content: the SHA-256, in hex, over its id
// and pairs. Files, splits and the order of JSON keys do not matter; the order
// of pairs does.
func (t *Task) Hash() string {
	h := sha256.New()
	t.writeTo(h)
	return hex.EncodeToString(h.Sum(nil))
}

// writeTo writes lengths before contents, so that no two tasks write the same.
func (t *Task) writeTo(h hash.Hash) {
	number := func(n int) {
		var b [4]byte
		binary.LittleEndian.PutUint32(b[:], uint32(n))
		h.Write(b[:])
	}
	number(len(t.ID))
	h.Write([]byte(t.ID))
	for _, pairs := range [][]Pair{t.Train, t.Test} {
		number(len(pairs))
		for _, p := range pairs {
			for _, g := range []Grid{p.Input, p.Output} {
				number(g.Rows)
				number(g.Cols)
				h.Write(g.Cells)
			}
		}
	}
}

// Hash is the version of a corpus: the SHA-256, in hex, over the hashes of its
// tasks, sorted. Equal content gives an equal hash whatever the layout, so a
// folder and Kaggle's files of the same tasks agree.
func (c *Corpus) Hash() string {
	hashes := make([]string, len(c.Tasks))
	for i := range c.Tasks {
		hashes[i] = c.Tasks[i].Hash()
	}
	sort.Strings(hashes)
	h := sha256.New()
	for _, x := range hashes {
		h.Write([]byte(x))
	}
	return hex.EncodeToString(h.Sum(nil))
}

// Difference is an id whose tasks differ between two corpora.
type Difference struct {
	ID       string
	InA, InB bool // which corpora have the id at all
	// Where is the first place that differs when both have it, as
	// "test[0].output"; or "number of tasks" when the id occurs more often in
	// one of them.
	Where string
}

func (d Difference) String() string {
	switch {
	case !d.InB:
		return d.ID + ": only in the first"
	case !d.InA:
		return d.ID + ": only in the second"
	}
	return d.ID + ": " + d.Where + " differs"
}

// Diff lists the ids whose tasks differ between a and b, sorted by id. None
// means that both have the same Hash.
func Diff(a, b *Corpus) []Difference {
	inA, inB := byID(a), byID(b)
	ids := make(map[string]bool, len(inA))
	for id := range inA {
		ids[id] = true
	}
	for id := range inB {
		ids[id] = true
	}
	var found []Difference
	for id := range ids {
		d := Difference{ID: id, InA: len(inA[id]) > 0, InB: len(inB[id]) > 0}
		switch {
		case !d.InA || !d.InB:
		case len(inA[id]) != len(inB[id]):
			d.Where = "number of tasks"
		default:
			for i, t := range inA[id] {
				if d.Where = t.firstDifference(inB[id][i]); d.Where != "" {
					break
				}
			}
			if d.Where == "" {
				continue
			}
		}
		found = append(found, d)
	}
	sort.Slice(found, func(i, j int) bool { return found[i].ID < found[j].ID })
	return found
}

// byID groups tasks; tasks with one id are sorted by content, since their
// order means nothing here.
func byID(c *Corpus) map[string][]*Task {
	m := make(map[string][]*Task, len(c.Tasks))
	for i := range c.Tasks {
		m[c.Tasks[i].ID] = append(m[c.Tasks[i].ID], &c.Tasks[i])
	}
	for _, tasks := range m {
		if len(tasks) > 1 {
			sort.SliceStable(tasks, func(i, j int) bool { return tasks[i].Hash() < tasks[j].Hash() })
		}
	}
	return m
}

// firstDifference names the first place where the pairs differ, "" if none.
func (t *Task) firstDifference(u *Task) string {
	sections := []struct {
		name string
		a, b []Pair
	}{{"train", t.Train, u.Train}, {"test", t.Test, u.Test}}
	for _, s := range sections {
		for i := range min(len(s.a), len(s.b)) {
			switch {
			case !s.a[i].Input.Equal(s.b[i].Input):
				return fmt.Sprintf("%s[%d].input", s.name, i)
			case !s.a[i].Output.Equal(s.b[i].Output):
				return fmt.Sprintf("%s[%d].output", s.name, i)
			}
		}
		if len(s.a) != len(s.b) {
			return "number of " + s.name + " pairs"
		}
	}
	return ""
}
