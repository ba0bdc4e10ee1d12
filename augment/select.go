package augment

import (
	"fmt"
	"sort"

	"deeploop/arc"
	"deeploop/internal/wording"
)

// selection is the part of a corpus that becomes a dataset.
type selection struct {
	groups  [][]*arc.Task // in order; the reference shuffles each
	skipped []*arc.Task
}

// choose keeps the named tasks (nil: all) whose grids fit a side by side
// canvas.
func choose(c *arc.Corpus, names []string, side int) (*selection, error) {
	var wanted map[string]bool
	if names != nil {
		wanted = make(map[string]bool, len(names))
		for _, name := range names {
			wanted[name] = true
		}
		if len(wanted) == 0 {
			return nil, inputErrorf("choose tasks: the list of tasks is empty, expected one task id a line")
		}
		known := make(map[string]bool, len(c.Tasks))
		for i := range c.Tasks {
			known[c.Tasks[i].ID] = true
		}
		var unknown []string
		for name := range wanted {
			if !known[name] {
				unknown = append(unknown, name)
			}
		}
		if len(unknown) > 0 {
			sort.Strings(unknown)
			return nil, inputErrorf("choose tasks: the input has no task %s; ids are file names without .json", wording.List(unknown, 10))
		}
	}
	s := new(selection)
	kept := 0
	for _, g := range c.Groups {
		var group []*arc.Task
		for i := g.Start; i < g.End; i++ {
			t := &c.Tasks[i]
			switch rows, cols := largest(t); {
			case wanted != nil && !wanted[t.ID]:
			case rows > side || cols > side:
				s.skipped = append(s.skipped, t)
			default:
				group = append(group, t)
			}
		}
		if len(group) > 0 {
			s.groups = append(s.groups, group)
			kept += len(group)
		}
	}
	if kept == 0 {
		if len(s.skipped) > 0 {
			return nil, inputErrorf("choose tasks: none of %d tasks fits a %dx%d canvas; raise --max-grid", len(s.skipped), side, side)
		}
		return nil, inputErrorf("choose tasks: the input has no tasks")
	}
	return s, nil
}

// largest returns the largest numbers of rows and of columns of t's grids.
func largest(t *arc.Task) (rows, cols int) {
	for _, pairs := range [][]arc.Pair{t.Train, t.Test} {
		for _, p := range pairs {
			rows = max(rows, p.Input.Rows, p.Output.Rows)
			cols = max(cols, p.Input.Cols, p.Output.Cols)
		}
	}
	return rows, cols
}

// findLeaks lists the held-out test pairs that are also trained on, each with
// the first such training pair, and the test inputs that occur among their own
// task's demonstrations.
func findLeaks(tasks []*arc.Task, fileName func(string) string) (leaks []Leak, inputs []PairRef) {
	ref := func(t *arc.Task, section string, i int) PairRef {
		return PairRef{Task: t.ID, File: fileName(t.File), Section: section, Index: i}
	}
	trained := make(map[string]PairRef)
	add := func(t *arc.Task, section string, pairs []arc.Pair) {
		for i, p := range pairs {
			if _, ok := trained[pairKey(p)]; !ok && p.Labelled() {
				trained[pairKey(p)] = ref(t, section, i)
			}
		}
	}
	for _, t := range tasks {
		add(t, "train", t.Train)
		if !t.HoldOut {
			add(t, "test", t.Test)
		}
	}
	for _, t := range tasks {
		if t.HoldOut {
			for i, p := range t.Test {
				if where, ok := trained[pairKey(p)]; ok && p.Labelled() {
					leaks = append(leaks, Leak{Test: ref(t, "test", i), Train: where})
				}
			}
		}
		for _, o := range t.TestAlsoInTrain() {
			inputs = append(inputs, ref(t, "test", o.Test))
		}
	}
	return leaks, inputs
}

// pairKey is equal for equal pairs only.
func pairKey(p arc.Pair) string {
	return fmt.Sprintf("%d %d %d %d %s%s", p.Input.Rows, p.Input.Cols, p.Output.Rows, p.Output.Cols, p.Input.Cells, p.Output.Cells)
}
