package solve

import (
	"context"
	"encoding/json"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"deeploop/arc"
	"deeploop/augment"
	"deeploop/hrm"
	"deeploop/internal/kernel"
	"deeploop/internal/kernel/ref"
)

// tiny is a model that trains in milliseconds.
func tiny(steps int) Settings {
	s := Defaults()
	s.Train = hrm.PresetTesting()
	s.Train.Arch.HiddenSize, s.Train.Arch.PuzzleEmbDim = 16, 16
	s.Train.Arch.HCycles, s.Train.Arch.LCycles, s.Train.Arch.HaltMaxSteps = 1, 1, 2
	s.Train.GlobalBatchSize, s.Train.Steps, s.Votes = 4, steps, 20
	s.Colors, s.Models = []string{"keep", "free"}, 1
	return s
}

func sample(t *testing.T, id string) *arc.Task {
	t.Helper()
	c, err := arc.Samples()
	require.NoError(t, err)
	tasks := c.Find(id)
	require.Len(t, tasks, 1)
	return tasks[0]
}

// clock moves on by a second whenever it is asked.
type clock struct{ t time.Time }

func (c *clock) now() time.Time {
	c.t = c.t.Add(time.Second)
	return c.t
}

func solver(t *testing.T, s Settings) *Solver {
	t.Helper()
	b := ref.New(1)
	t.Cleanup(func() { b.Close() })
	require.NoError(t, s.Check())
	return &Solver{Settings: s, Backend: b, Act: kernel.Float32, Now: (&clock{}).now}
}

func answers(t *testing.T, s Settings, task *arc.Task) *Answers {
	t.Helper()
	a, err := solver(t, s).Solve(t.Context(), NewProblem(task), nil)
	require.NoError(t, err)
	a.Seconds, a.TrainSeconds = 0, 0
	return a
}

// Right answers in the file change nothing, whatever they are.
func TestTestOutputsAreNeverSeen(t *testing.T) {
	task := sample(t, "mirror-sideways-square")
	want := answers(t, tiny(3), task)
	other := *task
	other.Test = append([]arc.Pair(nil), task.Test...)
	for _, out := range []arc.Grid{{}, arc.NewGrid(30, 30), {Rows: 1, Cols: 2, Cells: []uint8{8, 9}}} {
		for i := range other.Test {
			other.Test[i].Output = out
		}
		require.Equal(t, want, answers(t, tiny(3), &other))
	}
}

// With steps for a limit the same settings give the same answers, and the seed
// gives others.
func TestSolveIsDeterministic(t *testing.T) {
	task := sample(t, "halo")
	s := tiny(4)
	s.Copies = 3
	want := answers(t, s, task)
	require.Equal(t, EndSteps, want.End)
	require.Equal(t, 4, want.Steps)
	require.Equal(t, want, answers(t, s, task))
	s.Train.Seed = 7
	require.NotEqual(t, want.Loss, answers(t, s, task).Loss)
}

// A task of one colour that never changes is learned and answered.
func TestSolveLearns(t *testing.T) {
	task, s := learnable()
	task.Test = append(task.Test, task.Test[0])
	grid := task.Train[0].Output
	a := answers(t, s, task)
	require.Len(t, a.Tests, 2)
	for _, test := range a.Tests {
		require.NotEmpty(t, test.Top)
		require.Equal(t, grid, test.Top[0].Grid)
		require.Positive(t, test.Top[0].MeanQ)
		require.LessOrEqual(t, test.Top[0].Votes, test.Votes)
	}
	require.Greater(t, a.Cells, 0.9)

	// Kept answers come back as they were.
	raw, err := json.Marshal(a)
	require.NoError(t, err)
	var back Answers
	require.NoError(t, json.Unmarshal(raw, &back))
	require.Equal(t, *a, back)
}

// Time ends the training, and leaves room for votes; a machine that is far too
// slow makes one step and one batch of votes.
func TestTimeEndsTheTraining(t *testing.T) {
	task := sample(t, "halo")
	s := tiny(0)
	s.Limit = time.Minute
	a, err := solver(t, s).Solve(t.Context(), NewProblem(task), nil)
	require.NoError(t, err)
	require.Equal(t, EndTime, a.End)
	require.Greater(t, a.Steps, 5)
	require.LessOrEqual(t, a.Seconds, 61.0)
	require.Equal(t, 20, a.Tests[0].Votes)

	s.Limit = time.Millisecond
	a, err = solver(t, s).Solve(t.Context(), NewProblem(task), nil)
	require.NoError(t, err)
	require.Equal(t, 1, a.Steps)
	require.Less(t, a.Tests[0].Votes, 20, "one batch")
}

// learnable is a task that a dozen steps learn.
func learnable() (*arc.Task, Settings) {
	grid := arc.Grid{Rows: 2, Cols: 2, Cells: []uint8{3, 3, 3, 3}}
	s := tiny(150)
	s.Colors, s.Train.LR = []string{"keep"}, 1e-2
	return &arc.Task{ID: "same", Train: []arc.Pair{{Input: grid, Output: grid}}, Test: []arc.Pair{{Input: grid}}}, s
}

// Models that learn their demonstrations in their part of the time differ, and
// all vote.
func TestModelsVoteTogether(t *testing.T) {
	task, s := learnable()
	one := answers(t, s, task)
	s.Models = 3
	all := answers(t, s, task)
	require.Equal(t, 3, all.Models)
	require.Equal(t, 450, all.Steps)
	require.Equal(t, 3*one.Tests[0].Votes, all.Tests[0].Votes)
	require.NotEqual(t, one.Loss, all.Loss, "models of other seeds")
	require.Equal(t, all, answers(t, s, task))

	// Stopped while the second trains: both have voted.
	ctx, cancel := context.WithCancel(t.Context())
	a, err := solver(t, s).Solve(ctx, NewProblem(task), func(st State) {
		if st.Step == 151 && st.Due == 0 {
			cancel()
		}
	})
	require.NoError(t, err)
	require.Equal(t, EndInterrupt, a.End)
	require.Equal(t, [2]int{2, 151}, [2]int{a.Models, a.Steps})
}

// A model that has not learned its demonstrations goes on, at the rates of a
// new part, and votes once.
func TestModelGoesOnUntilItHasLearned(t *testing.T) {
	task := sample(t, "halo")
	s := tiny(3)
	one := answers(t, s, task)
	s.Models = 3
	a, err := solver(t, s).Solve(t.Context(), NewProblem(task), nil)
	require.NoError(t, err)
	require.Less(t, a.Exact, learnedShare)
	require.Equal(t, [2]int{1, 9}, [2]int{a.Models, a.Steps})
	require.Equal(t, one.Tests[0].Votes, a.Tests[0].Votes)
	require.Less(t, a.Loss, one.Loss)

	s.Train.Steps, s.Limit = 0, time.Minute
	timed, err := solver(t, s).Solve(t.Context(), NewProblem(task), nil)
	require.NoError(t, err)
	require.Equal(t, 1, timed.Models)
	require.Equal(t, EndTime, timed.End)
	require.LessOrEqual(t, timed.Seconds, 62.0)
	s.Models = 1
	whole, err := solver(t, s).Solve(t.Context(), NewProblem(task), nil)
	require.NoError(t, err)
	require.InDelta(t, whole.Steps, timed.Steps, 2, "parts that do not vote leave their time for it to the next")

	// It learns in its second part. Another has two more, where there are.
	task, s = learnable()
	for parts, models := range map[int]int{3: 1, 4: 2, 5: 2} {
		s.Train.Steps, s.Models = 10, parts
		a = answers(t, s, task)
		require.Equal(t, [2]int{models, 10 * parts}, [2]int{a.Models, a.Steps})
	}
}

// A treatment far behind the others is hopeless; of equals, and before anything
// is right, none is.
func TestHopeless(t *testing.T) {
	r := recent{of: map[Treatment]*share{Keep: {90, 100}, Free: {10, 100}, Any: {1, 100}}}
	require.Equal(t, []bool{false, false, true, true}, []bool{r.hopeless(Keep), r.hopeless(Free), r.hopeless(Any), r.hopeless(Copied)})
	require.False(t, r.learned())
	r.of[Keep].sum = 96
	require.True(t, r.learned())
	require.False(t, (&recent{of: map[Treatment]*share{Any: {0, 4}}}).hopeless(Any))
}

// Where colours have a meaning, shuffled ones cannot be learned: they have no
// vote, and no part in the second model.
func TestHopelessTreatmentsHaveNoVote(t *testing.T) {
	in := arc.Grid{Rows: 3, Cols: 3, Cells: []uint8{1, 2, 3, 4, 5, 6, 7, 8, 9}}
	out := arc.Grid{Rows: 3, Cols: 3, Cells: []uint8{2, 3, 4, 5, 6, 7, 8, 9, 1}}
	task := &arc.Task{ID: "next", Train: []arc.Pair{{Input: in, Output: out}}, Test: []arc.Pair{{Input: in}}}
	s := tiny(200)
	s.Colors, s.Turns, s.Train.LR, s.Models = []string{"keep", "any"}, false, 1e-2, 2
	a := answers(t, s, task)
	require.Greater(t, a.Treatments[Keep], learnedShare)
	require.Less(t, a.Treatments[Any], hopelessShare)
	require.Equal(t, 2, a.Models)
	require.Equal(t, 2*s.Votes/2, a.Tests[0].Votes, "half of the ballots of both models")
	require.Equal(t, out, a.Tests[0].Top[0].Grid)
	require.Less(t, a.Exact, 0.85, "mean of a model that drew both and one that did not")
}

// A cancelled context answers with what was learned; with nothing learned it
// is an error.
func TestCancelledAnswersSoFar(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	p := NewProblem(sample(t, "halo"))
	a, err := solver(t, tiny(1000)).Solve(ctx, p, func(s State) {
		if s.Step == 3 {
			cancel()
		}
	})
	require.NoError(t, err)
	require.Equal(t, EndInterrupt, a.End)
	require.Equal(t, 3, a.Steps)
	require.Less(t, a.Tests[0].Votes, 20, "one batch")
	_, err = solver(t, tiny(1000)).Solve(ctx, p, nil)
	require.ErrorIs(t, err, context.Canceled)
}

// The rate rises, falls with the budget and ends low, in few steps as in many.
func TestRates(t *testing.T) {
	s := tiny(0)
	c := s.Train
	c.LR, c.LRWarmupSteps, c.LRMinRatio = 1, 50, 0.1
	l := &hrm.Learner{}
	for _, steps := range []int{20, 1000} {
		var rates []float64
		for i := range steps {
			setRates(l, c, i, float64(i)/float64(steps))
			rates = append(rates, l.LR.At(i+1))
		}
		require.Less(t, rates[0], 0.5)
		require.Greater(t, rates[steps/8], 0.9)
		require.InDelta(t, 0.55, rates[steps/2], 0.06)
		require.InDelta(t, 0.1, rates[steps-1], 0.02)
	}
}

func TestSizeRule(t *testing.T) {
	g := arc.NewGrid
	pairs := func(sizes ...[4]int) (all []arc.Pair) {
		for _, s := range sizes {
			all = append(all, arc.Pair{Input: g(s[0], s[1]), Output: g(s[2], s[3])})
		}
		return all
	}
	for _, c := range []struct {
		demos      []arc.Pair
		test       [2]int
		rows, cols int
		ok         bool
	}{
		{pairs([4]int{3, 4, 3, 4}, [4]int{5, 5, 5, 5}), [2]int{7, 2}, 7, 2, true},
		{pairs([4]int{3, 4, 6, 4}, [4]int{5, 5, 10, 5}), [2]int{7, 2}, 14, 2, true},
		{pairs([4]int{4, 4, 2, 2}, [4]int{6, 6, 3, 3}), [2]int{5, 4}, 0, 0, false},
		{pairs([4]int{3, 4, 1, 1}, [4]int{5, 5, 1, 1}), [2]int{7, 2}, 1, 1, true},
		{pairs([4]int{3, 3, 3, 3}, [4]int{3, 3, 3, 3}), [2]int{3, 3}, 3, 3, true},
		{pairs([4]int{3, 3, 3, 3}, [4]int{3, 3, 3, 3}), [2]int{4, 3}, 0, 0, false}, // the same, or always 3?
		{pairs([4]int{3, 3, 2, 3}, [4]int{4, 3, 5, 3}), [2]int{3, 3}, 0, 0, false},
		{pairs([4]int{3, 3, 30, 30}, [4]int{2, 2, 20, 20}), [2]int{4, 4}, 0, 0, false}, // larger than ARC allows
	} {
		p := NewProblem(&arc.Task{Train: c.demos, Test: []arc.Pair{{Input: g(c.test[0], c.test[1])}}})
		rows, cols, ok := p.expected(p.Tests[0])
		require.Equal(t, c.ok, ok, "%+v", c.test)
		if ok {
			require.Equal(t, [2]int{c.rows, c.cols}, [2]int{rows, cols})
		}
		require.LessOrEqual(t, p.Side(), arc.MaxSide)
		require.GreaterOrEqual(t, p.Side(), max(c.rows, c.cols, c.test[0], c.test[1]))
	}
}

// Colours with a meaning stay, others are shuffled; a treatment that changes
// nothing makes no view.
func TestViews(t *testing.T) {
	row := func(cells ...uint8) arc.Grid { return arc.Grid{Rows: 1, Cols: len(cells), Cells: cells} }
	p := NewProblem(&arc.Task{
		Train: []arc.Pair{{Input: row(0, 3, 5), Output: row(3, 3, 5)}, {Input: row(0, 3, 7), Output: row(3, 3, 7)}},
		Test:  []arc.Pair{{Input: row(0, 3, 8)}},
	})
	s := Defaults()
	views := p.views(s)
	require.Len(t, views, 24)
	require.Nil(t, views[0].Shuffled)
	require.Equal(t, []uint8{1, 2, 4, 5, 6, 7, 8, 9}, views[8].Shuffled)
	require.Equal(t, []uint8{1, 2, 3, 4, 5, 6, 7, 8, 9}, views[16].Shuffled)
	draw := rand.New(rand.NewPCG(1, 2))
	moved := map[uint8]bool{}
	for range 100 {
		a := views[8].draw(draw)
		require.Equal(t, [2]uint8{0, 3}, [2]uint8{a.Colors[0], a.Colors[3]})
		require.Equal(t, a.Colors, a.Colors.Inverse().Inverse(), "a permutation")
		moved[a.Colors[5]] = true
	}
	require.Len(t, moved, 8)

	// What an output has and its input lacks has a meaning, whatever the others do.
	p = NewProblem(&arc.Task{
		Train: []arc.Pair{{Input: row(0, 3, 5), Output: row(3, 3, 4)}, {Input: row(0, 3, 4), Output: row(4, 3, 5)}},
		Test:  []arc.Pair{{Input: row(0, 3, 8)}},
	})
	views = p.views(s)
	require.Len(t, views, 24)
	require.Equal(t, []uint8{1, 2, 6, 7, 8, 9}, views[8].Shuffled)
	require.Equal(t, []uint8{1, 2, 3, 6, 7, 8, 9}, views[16].Shuffled)
	require.Equal(t, []Treatment{Keep, Free, Any}, []Treatment{views[7].Treatment, views[8].Treatment, views[23].Treatment})

	// Every colour in every demonstration: nothing is free.
	p = NewProblem(&arc.Task{Train: []arc.Pair{{Input: row(1), Output: row(2)}}, Test: []arc.Pair{{Input: row(1)}}})
	s.Colors = []string{"keep", "free"}
	require.Len(t, p.views(s), 8)
	s.Colors, s.Turns, s.Copies = nil, false, 10
	views = p.views(s)
	require.Len(t, views, 11)
	require.Equal(t, augment.Original(), views[0].Fixed)
	require.NotEqual(t, views[1], views[2])
}

// What a model that is always right would answer is read back as the answer,
// from every place and augmentation.
func TestBallotsAreReadBack(t *testing.T) {
	for _, id := range []string{"mirror-sideways-square", "enlarge-twice", "count-as-bar", "crop-to-shape"} {
		task := sample(t, id)
		p := NewProblem(task)
		side := p.canvas(2)
		views := p.views(Defaults())
		all := p.ballots(views, side, 40, rand.New(rand.NewPCG(3, 4)))
		require.NotEmpty(t, all.list)
		votes := 0
		for _, n := range all.times {
			votes += n
		}
		require.Equal(t, 40*len(p.Tests), votes)
		moved := false
		paint := newPainter(side)
		labels, tokens, got := make([]int32, side*side), make([]uint8, side*side), make([]uint8, side*side)
		for i, b := range all.list {
			moved = moved || b.row+b.col > 0
			if i < len(p.Tests)*len(views) {
				require.Zero(t, b.row+b.col, "first in the corner")
			}
			right := task.Test[b.test].Output
			paint.input(labels, b.aug.Apply(right), b.row, b.col)
			for j, v := range labels {
				tokens[j] = uint8(v)
			}
			rows, cols, _ := p.expected(p.Tests[b.test])
			if augment.SwapsAxes(b.aug.Dihedral) {
				rows, cols = cols, rows
			}
			for _, rule := range []bool{false, true} {
				if !rule {
					read(got, tokens, side, b, 0, 0)
				} else {
					read(got, tokens, side, b, rows, cols)
				}
				require.True(t, right.Equal(counted(all.list).Undo(int32(i)+1, cropped(got, side))), "%s, ballot %+v", id, b)
			}
		}
		_, _, known := p.expected(p.Tests[0])
		require.Equal(t, known && len(p.Tests) > 0, moved, id)
	}
}

func cropped(tokens []uint8, side int) arc.Grid {
	rows, cols := 0, 0
	for rows < side && tokens[rows*side] >= augment.FirstColor {
		rows++
	}
	for cols < side && tokens[cols] >= augment.FirstColor {
		cols++
	}
	return augment.Lift(tokens, side, rows, cols, 0, 0)
}

// An answer of another size than the demonstrations imply is no answer.
func TestReadDropsOtherSizes(t *testing.T) {
	const side = 3
	dst := make([]uint8, side*side)
	tokens := []uint8{2, 3, 1, 4, 5, 1, 1, 1, 0}
	read(dst, tokens, side, ballot{}, 2, 2)
	require.Equal(t, []uint8{2, 3, 0, 4, 5, 0, 0, 0, 0}, dst)
	read(dst, tokens, side, ballot{}, 3, 2)
	require.Equal(t, make([]uint8, side*side), dst)
	read(dst, tokens, side, ballot{}, 4, 4)
	require.Equal(t, make([]uint8, side*side), dst)
}

// Every task fits: the largest there is, in small batches, and tasks with many
// test inputs, one demonstration, one cell.
func TestOddTasks(t *testing.T) {
	big := arc.NewGrid(30, 30)
	s := tiny(1)
	s.Train.GlobalBatchSize, s.Votes = 32, 2
	a := answers(t, s, &arc.Task{ID: "big", Train: []arc.Pair{{Input: big, Output: big}}, Test: []arc.Pair{{Input: big}}})
	require.Equal(t, 30, a.Side)
	require.Equal(t, 4, a.Batch)
	cell := arc.NewGrid(1, 1)
	task := &arc.Task{ID: "cell", Train: []arc.Pair{{Input: cell, Output: cell}}}
	for range 5 {
		task.Test = append(task.Test, arc.Pair{Input: cell})
	}
	a = answers(t, s, task)
	require.Len(t, a.Tests, 5)
	require.Equal(t, 1, a.Side)
	require.Equal(t, 32, a.Batch)
}

func TestSettingsAreChecked(t *testing.T) {
	for _, change := range []func(*Settings){
		func(s *Settings) { s.Colors = []string{"red"} },
		func(s *Settings) { s.Colors = nil },
		func(s *Settings) { s.Copies = -1 },
		func(s *Settings) { s.Margin = 30 },
		func(s *Settings) { s.Models = 0 },
		func(s *Settings) { s.Votes = 0 },
		func(s *Settings) { s.Init = "x" },
		func(s *Settings) { s.Train.Steps = 0 },
		func(s *Settings) { s.Limit = -1 },
		func(s *Settings) { s.Train.LR = -1 },
	} {
		s := tiny(1)
		require.NoError(t, s.Check())
		change(&s)
		require.Error(t, s.Check())
	}
}
