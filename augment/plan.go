package augment

import (
	"context"

	"deeploop/arc"
	"deeploop/internal/rng"
)

// plan is a dataset before any pixel is drawn: every random decision of the
// build, in a few bytes per example.
type plan struct {
	settings Settings
	tasks    []planTask
	copies   []Augmentation // of all tasks, in order, the originals included
	splits   []*splitPlan   // in the order they are drawn and written
	names    *identifierMap
	after    *rng.Legacy // the generator after the last draw
}

// planTask is one task: its copies are copies[first:first+count].
type planTask struct {
	*arc.Task
	first, count int
}

// splitPlan is the train or test split.
type splitPlan struct {
	name        string
	groups      []splitGroup
	identifiers []int32 // per puzzle
	puzzleAt    []int32 // first example per puzzle, and the total
	groupAt     []int32 // first puzzle per group, and the total
	offsets     []uint8 // row and column per example; nil: none is translated
}

// splitGroup is a task's share of a split.
type splitGroup struct {
	task  int // in plan.tasks
	pairs []arc.Pair
}

func (s *splitPlan) examples() int { return int(s.puzzleAt[len(s.puzzleAt)-1]) }
func (s *splitPlan) puzzles() int  { return len(s.identifiers) }

// meanPuzzleExamples is 0 for an empty split.
func (s *splitPlan) meanPuzzleExamples() float64 {
	if s.puzzles() == 0 {
		return 0
	}
	return float64(s.examples()) / float64(s.puzzles())
}

// trainPairs are the pairs of t that are trained on, in the order of the
// file's sections. A test pair without an output teaches nothing and is left
// out.
func trainPairs(t *arc.Task) []arc.Pair {
	if t.HoldOut {
		return t.Train
	}
	var test []arc.Pair
	for _, p := range t.Test {
		if p.Labelled() {
			test = append(test, p)
		}
	}
	first, second := t.Train, test
	if t.TestFirst {
		first, second = second, first
	}
	return append(append(make([]arc.Pair, 0, len(first)+len(second)), first...), second...)
}

// newPlan makes all random draws, in the reference's order: group by group,
// the order of its tasks, then for each task its copies; then split by split,
// for each puzzle the example that is not translated and the offsets of the
// others.
//
// maxExamples bounds the number of examples of a split (2^31-1 fit the format).
func newPlan(ctx context.Context, groups [][]*arc.Task, s Settings, maxExamples int) (*plan, error) {
	m := rng.NewLegacy(s.Seed)
	p := &plan{settings: s, after: m}
	examples := 0
	for _, group := range groups {
		order := append([]*arc.Task(nil), group...)
		m.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
		for _, t := range order {
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			p.add(t, m)
			examples += p.tasks[len(p.tasks)-1].count * (len(t.Train) + len(t.Test))
			if examples > maxExamples {
				return nil, inputErrorf("plan dataset: num-aug %d gives more than %d examples, the most the format holds; ask for fewer copies or fewer tasks",
					s.NumAug, maxExamples)
			}
		}
	}
	p.names = newIdentifierMap(p)
	for _, split := range p.splits {
		split.draw(p, m)
	}
	return p, nil
}

// add draws the copies of a task and gives it to its splits.
func (p *plan) add(t *arc.Task, m *rng.Legacy) {
	train := trainPairs(t)
	all := train
	if t.HoldOut {
		all = append(append([]arc.Pair(nil), train...), t.Test...)
	}
	first := len(p.copies)
	p.copies = append(p.copies, Original())
	p.copies = drawCopies(m, newOrbit(all), p.settings.NumAug, p.copies)
	task := len(p.tasks)
	p.tasks = append(p.tasks, planTask{t, first, len(p.copies) - first})

	toTrain := func() { p.split("train").give(task, train) }
	if t.HoldOut && p.settings.DestOrder == TestFirst {
		p.split("test").give(task, t.Test)
		toTrain()
		return
	}
	toTrain()
	if t.HoldOut {
		p.split("test").give(task, t.Test)
	}
}

// split returns the named split; the first use decides the order.
func (p *plan) split(name string) *splitPlan {
	for _, s := range p.splits {
		if s.name == name {
			return s
		}
	}
	s := &splitPlan{name: name, puzzleAt: []int32{0}, groupAt: []int32{0}}
	p.splits = append(p.splits, s)
	return s
}

func (s *splitPlan) give(task int, pairs []arc.Pair) {
	if len(pairs) > 0 {
		s.groups = append(s.groups, splitGroup{task, pairs})
	}
}

// draw makes the second half of the draws and fills the index arrays.
func (s *splitPlan) draw(p *plan, m *rng.Legacy) {
	side := p.settings.MaxGrid
	translate := s.name == "train"
	example := int32(0)
	for _, g := range s.groups {
		t := &p.tasks[g.task]
		for k := range t.count {
			a := p.copies[t.first+k]
			still := m.Intn(len(g.pairs))
			for i, pair := range g.pairs {
				if !translate {
					continue
				}
				var row, col int
				if i != still {
					rows, cols := max(pair.Input.Rows, pair.Output.Rows), max(pair.Input.Cols, pair.Output.Cols)
					if SwapsAxes(a.Dihedral) {
						rows, cols = cols, rows
					}
					row = m.Intn(side - rows + 1)
					col = m.Intn(side - cols + 1)
				}
				s.offsets = append(s.offsets, uint8(row), uint8(col))
			}
			example += int32(len(g.pairs))
			s.puzzleAt = append(s.puzzleAt, example)
			s.identifiers = append(s.identifiers, p.names.of(g.task, k))
		}
		s.groupAt = append(s.groupAt, int32(s.puzzles()))
	}
}
