package solve

import (
	"context"
	"fmt"
	"time"

	"deeploop/arc"
	"deeploop/augment"
	"deeploop/hrm"
	"deeploop/internal/kernel"
	"deeploop/internal/rng"
	"deeploop/voting"
)

// Solver answers problems, one after the other. Several may run at a time, each
// with a backend of its own.
type Solver struct {
	Settings
	Backend kernel.Backend
	Act     kernel.DType     // of activations
	Now     func() time.Time // the clock
	Memory  uint64           // bytes of the machine; 0: unknown
	// Checkpoint, where set, is what training starts from.
	Checkpoint *Checkpoint
}

// State is how far a task is.
type State struct {
	Step       int
	Progress   float64 // of the training, 0 to 1
	Loss       float64 // token loss of a row
	Halted     bool    // some row did so far, else there is no share of anything
	Cells      float64 // share of cells right, of rows that halted
	Exact      float64 // share of rows all right, of rows that halted
	Voted, Due int     // ballots counted, and in all; 0 while training
}

// Solve trains on the problem's demonstrations and counts votes. A cancelled
// context ends the training; what was learned so far still votes, a batch of
// ballots, and the context's error is returned only where nothing was learned.
// report, where not nil, is called after every step and every batch.
//
// The limit is spent in Settings.Models parts, or each takes as many steps. A
// part trains a new model, or goes on with the last one while that has not
// learned its demonstrations or took more parts to than are left; every model
// votes. Treatments of colours that a model cannot learn while it learns others
// have no votes, and no part in the models after it.
//
// With a number of steps and no limit the answers depend on settings, problem,
// kernel and thread count only.
func (s *Solver) Solve(ctx context.Context, p *Problem, report func(State)) (*Answers, error) {
	if report == nil {
		report = func(State) {}
	}
	r, err := s.plan(p, report)
	if err == nil {
		err = r.models(ctx)
	}
	if err != nil {
		return nil, fmt.Errorf("solve %s: %w", p.ID, err)
	}
	return r.end(), nil
}

// run is the solving of one problem.
type run struct {
	*Solver
	problem *Problem
	begun   time.Time
	config  hrm.TrainConfig // of every model, but for the seed
	side    int
	views   []View
	ballots ballots
	painter *painter
	counter *voting.Counter
	report  func(State)
	answers Answers // sums over the models, until end

	open   []int                   // views that models to come draw from
	shares map[Treatment][]float64 // of rows right, of each model that drew it
}

// Check returns the error that Solve would begin with: a problem larger than
// the checkpoint's canvas, or a model larger than the machine's memory.
func (s *Solver) Check(p *Problem) error {
	if _, _, err := s.sized(p, len(p.views(s.Settings))); err != nil {
		return fmt.Errorf("solve %s: %w", p.ID, err)
	}
	return nil
}

// sized returns the configuration of a problem's models, for so many views, and
// the side of their canvas.
func (s *Solver) sized(p *Problem, views int) (c hrm.TrainConfig, side int, err error) {
	c, side = s.Train, p.canvas(s.Margin)
	if s.Checkpoint != nil {
		if err := s.Checkpoint.holds(p); err != nil {
			return c, side, err
		}
		side = s.Checkpoint.Side
	}
	c.GlobalBatchSize = s.batch(side)
	c.Arch.SeqLen, c.Arch.VocabSize, c.Arch.NumPuzzleIdentifiers = side*side, augment.VocabSize, views+1
	return c, side, c.CheckTraining(s.Act, s.Memory)
}

// plan decides all that does not depend on a model.
func (s *Solver) plan(p *Problem, report func(State)) (*run, error) {
	r := &run{Solver: s, problem: p, begun: s.Now(), views: p.views(s.Settings), report: report}
	var err error
	if r.config, r.side, err = s.sized(p, len(r.views)); err != nil {
		return nil, err
	}
	c := r.config
	r.shares = map[Treatment][]float64{}
	for i := range r.views {
		r.open = append(r.open, i)
	}
	r.painter = newPainter(r.side)
	r.ballots = p.ballots(r.views, r.side, s.Votes, rng.NewStream(uint64(s.Train.Seed), "ballots").Rand)
	task := arc.Task{ID: p.ID}
	for _, g := range p.Tests {
		task.Test = append(task.Test, arc.Pair{Input: g})
	}
	r.counter = voting.NewCounter([]arc.Task{task}, counted(r.ballots.list), r.side, 1)
	r.answers = Answers{ID: p.ID, Side: r.side, Batch: c.GlobalBatchSize, Parameters: c.Arch.NumParams(), Identifiers: len(r.views)}
	return r, nil
}

// models trains them, in as many parts of the time.
func (r *run) models(ctx context.Context) error {
	var f *fit // the model at work
	defer func() {
		if f != nil {
			f.close()
		}
	}()
	for i := range r.Models {
		var err error
		if f == nil {
			f, err = r.fit(i)
		} else {
			f.begin(i)
		}
		if err == nil {
			err = f.train(ctx)
		}
		last := i == r.Models-1
		// A new model will need as long as this one did.
		enough := f != nil && f.recent.learned() && r.Models-1-i >= i+1-f.first
		if err == nil && (last || enough || ctx.Err() != nil) {
			if err = f.vote(ctx); err == nil {
				f.close()
				f = nil
			}
		}
		switch {
		case ctx.Err() != nil && r.answers.Models > 0:
			if !last {
				r.answers.End = EndInterrupt
			}
			return nil
		case err != nil:
			return err
		}
	}
	return nil
}

// end is what came of all models.
func (r *run) end() *Answers {
	a := &r.answers
	n := float64(a.Models)
	a.Loss, a.Cells, a.Exact = a.Loss/n, a.Cells/n, a.Exact/n
	a.Treatments = map[Treatment]float64{}
	for t, shares := range r.shares {
		for _, s := range shares {
			a.Treatments[t] += s / float64(len(shares))
		}
	}
	a.Tests = testsOf(r.counter.Votes().Tasks[0])
	a.Seconds = r.Now().Sub(r.begun).Seconds()
	return a
}
