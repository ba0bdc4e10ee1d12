package voting

import (
	"errors"
	"fmt"

	"deeploop/arc"
)

// Gatherer takes the ground truth from predictions themselves, for files of
// the reference code that come without one: the rows of unaugmented tasks hold
// the test inputs and their outputs.
type Gatherer struct {
	names []Name
	side  int
	tasks []arc.Task
	place map[string]int // task name -> index in tasks
	seen  map[string]bool
	rows  int
}

// Name is what an identifier's name says of it.
type Name struct {
	Task      string
	Augmented bool
}

// NewGatherer reads canvases of side x side tokens. names is indexed by
// identifier.
func NewGatherer(names []Name, side int) *Gatherer {
	return &Gatherer{names: names, side: side, place: map[string]int{}, seen: map[string]bool{}}
}

// Add reads a batch of n rows: identifiers [n], inputs and labels
// [n, side*side]. A label canvas that starts with no colour is an unlabelled
// test input. As in the reference, a task must not have two equal test inputs:
// such rows cannot be told from rows that occur twice.
func (g *Gatherer) Add(identifiers []int32, inputs, labels []uint8) error {
	s := g.side * g.side
	for i, id := range identifiers {
		g.rows++
		if id == 0 {
			continue
		}
		if id < 0 || int(id) >= len(g.names) {
			return &Error{fmt.Errorf("row %d has identifier %d, expected 0 to %d: these predictions are of another dataset", g.rows-1, id, len(g.names)-1)}
		}
		name := g.names[id]
		if name.Augmented {
			continue
		}
		p := arc.Pair{Input: Crop(inputs[i*s:(i+1)*s], g.side), Output: Crop(labels[i*s:(i+1)*s], g.side)}
		at, ok := g.place[name.Task]
		if !ok {
			at = len(g.tasks)
			g.place[name.Task] = at
			g.tasks = append(g.tasks, arc.Task{ID: name.Task})
		}
		k := fmt.Sprintf("%d:%s", at, keyOf(p.Input))
		if g.seen[k] {
			return &Error{fmt.Errorf("row %d: task %s has this test input twice, or the row occurs twice; such predictions need a ground truth and test indices beside them", g.rows-1, name.Task)}
		}
		g.seen[k] = true
		g.tasks[at].Test = append(g.tasks[at].Test, p)
	}
	return nil
}

// Tasks returns the tasks in the order of their first rows.
func (g *Gatherer) Tasks() ([]arc.Task, error) {
	if len(g.tasks) == 0 {
		return nil, &Error{errors.New("no row belongs to an unaugmented task, so the right answers are not known")}
	}
	return g.tasks, nil
}
