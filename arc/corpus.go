package arc

import (
	"fmt"
	"sort"
)

// Corpus is a set of tasks in the order of the reference builder: inputs as
// given, inside them folders by name ("evaluation" before "training"), inside
// these files by name, inside a combined file tasks in key order.
type Corpus struct {
	Tasks []Task
	// Groups cover Tasks without gaps, in order. The reference builder
	// shuffles the tasks of one group at a time.
	Groups []Group
	// Warnings are complete lines for a person, one per kind of thing.
	Warnings []string
	// Sources are the files read, in order.
	Sources []Source
}

// Group is one folder of task files, one combined file, or one single file.
type Group struct {
	// Name is the folder's name, the file group of a combined file
	// ("evaluation" for arc-agi_evaluation_challenges.json), or "".
	Name string
	// Path is the folder or file.
	Path string
	// Tasks[Start:End] belong to the group.
	Start, End int
}

// Source is a file that was read.
type Source struct {
	File   string `json:"file"`
	SHA256 string `json:"sha256"` // lower-case hex
}

// Clash is an id that several tasks of a corpus share. The reader keeps all of
// them; who needs unique names must tell them apart (see Corpus.Clashes).
type Clash struct {
	ID string
	// Tasks are positions in Corpus.Tasks, ascending, at least two.
	Tasks []int
	// Identical says that the pairs of all of them are equal.
	Identical bool
}

// Clashes returns the ids that occur more than once, by first occurrence. The
// reference builder gives such tasks one identifier without a word.
func (c *Corpus) Clashes() []Clash {
	byID := make(map[string][]int, len(c.Tasks))
	for i := range c.Tasks {
		byID[c.Tasks[i].ID] = append(byID[c.Tasks[i].ID], i)
	}
	var clashes []Clash
	for id, tasks := range byID {
		if len(tasks) < 2 {
			continue
		}
		clash := Clash{ID: id, Tasks: tasks, Identical: true}
		for _, i := range tasks[1:] {
			if !c.Tasks[tasks[0]].SamePairs(&c.Tasks[i]) {
				clash.Identical = false
			}
		}
		clashes = append(clashes, clash)
	}
	sort.Slice(clashes, func(i, j int) bool { return clashes[i].Tasks[0] < clashes[j].Tasks[0] })
	return clashes
}

// Find returns the tasks with an id, in order.
func (c *Corpus) Find(id string) []*Task {
	var found []*Task
	for i := range c.Tasks {
		if c.Tasks[i].ID == id {
			found = append(found, &c.Tasks[i])
		}
	}
	return found
}

// SamePairs reports whether both tasks hold equal pairs in equal order,
// whatever their ids and files.
func (t *Task) SamePairs(u *Task) bool {
	return samePairs(t.Train, u.Train) && samePairs(t.Test, u.Test)
}

func samePairs(a, b []Pair) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if !a[i].Input.Equal(b[i].Input) || !a[i].Output.Equal(b[i].Output) {
			return false
		}
	}
	return true
}

// Overlap says that a task's test input is also one of its train inputs.
type Overlap struct{ Test, Train int }

// TestAlsoInTrain returns the test inputs that equal a train input, with the
// first such train pair. ConceptARC's minimal tasks have them; they are kept.
func (t *Task) TestAlsoInTrain() []Overlap {
	var found []Overlap
	for i := range t.Test {
		for j := range t.Train {
			if t.Test[i].Input.Equal(t.Train[j].Input) {
				found = append(found, Overlap{Test: i, Train: j})
				break
			}
		}
	}
	return found
}

// noteOverlaps and noteClashes fill the warnings that need the whole corpus.
func (c *Corpus) noteOverlaps(n *notes) {
	for i := range c.Tasks {
		t := &c.Tasks[i]
		for _, o := range t.TestAlsoInTrain() {
			n.add("overlap", "test input also in train (kept)", fmt.Sprintf("%s test[%d] = train[%d]", t.ID, o.Test, o.Train))
		}
	}
}

func (c *Corpus) noteClashes(n *notes) {
	for _, clash := range c.Clashes() {
		text := "different tasks share an id (all kept)"
		if clash.Identical {
			text = "the same task occurs more than once (all kept)"
		}
		where := fmt.Sprintf("%s in", clash.ID)
		for k, i := range clash.Tasks {
			if k > 0 {
				where += " and"
			}
			where += " " + c.Tasks[i].File
		}
		n.add(text, text, where)
	}
}
