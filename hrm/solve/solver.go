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
	Cells      float64 // share of cells right, of rows that halted
	Exact      float64 // share of rows all right, of rows that halted
	Voted, Due int     // ballots counted, and in all; 0 while training
}

// Solve trains on the problem's demonstrations and counts votes. A cancelled
// context ends the training; what was learned so far still votes, a batch of
// ballots, and the context's error is returned only where nothing was learned.
// report, where not nil, is called after every step and every batch.
//
// With a number of steps and no limit the answers depend on settings, problem,
// kernel and thread count only.
func (s *Solver) Solve(ctx context.Context, p *Problem, report func(State)) (*Answers, error) {
	r, err := s.prepare(p)
	if err != nil {
		return nil, fmt.Errorf("solve %s: %w", p.ID, err)
	}
	defer r.learner.Segment.Close()
	if report == nil {
		report = func(State) {}
	}
	r.report = report
	if err := r.train(ctx); err != nil {
		return nil, fmt.Errorf("solve %s: %w", p.ID, err)
	}
	if err := r.vote(ctx); err != nil {
		return nil, fmt.Errorf("solve %s: %w", p.ID, err)
	}
	r.answers.Seconds = s.Now().Sub(r.budget.begun).Seconds()
	return &r.answers, nil
}

// run is the solving of one problem.
type run struct {
	*Solver
	problem *Problem
	side    int
	views   []View
	ballots ballots
	learner *hrm.Learner
	rows    hrm.Rows
	painter *painter
	budget  budget
	report  func(State)
	recent  recent
	answers Answers
}

// prepare builds the model and all that is known before training.
func (s *Solver) prepare(p *Problem) (*run, error) {
	r := &run{Solver: s, problem: p}
	r.budget = budget{steps: s.Train.Steps, limit: s.Limit, now: s.Now, begun: s.Now()}
	c := s.Train
	r.side = p.canvas(s.Margin)
	if s.Checkpoint != nil {
		if err := s.Checkpoint.holds(p); err != nil {
			return nil, err
		}
		r.side = s.Checkpoint.Side
	}
	c.GlobalBatchSize = s.batch(r.side)
	r.views = p.views(s.Settings)
	c.Arch.SeqLen, c.Arch.VocabSize, c.Arch.NumPuzzleIdentifiers = r.side*r.side, augment.VocabSize, len(r.views)+1
	if err := c.CheckTraining(s.Act, s.Memory); err != nil {
		return nil, err
	}
	m, err := s.model(c)
	if err != nil {
		return nil, err
	}
	if r.learner, err = hrm.NewLearner(m, s.Backend, c, 1); err != nil {
		return nil, err
	}
	r.learner.Frozen = s.Checkpoint != nil && !s.AllWeights
	r.rows, r.painter = hrm.NewRows(c.GlobalBatchSize, c.Arch.SeqLen), newPainter(r.side)
	r.ballots = p.ballots(r.views, r.side, s.Votes, rng.NewStream(uint64(c.Seed), "ballots").Rand)
	r.answers = Answers{
		ID: p.ID, Side: r.side, Batch: c.GlobalBatchSize, Parameters: c.Arch.NumParams(), Identifiers: len(r.views),
	}
	return r, nil
}

func (s *Solver) model(c hrm.TrainConfig) (*hrm.Model, error) {
	if s.Checkpoint != nil {
		return s.Checkpoint.model(c.Arch, s.Act, s.Init)
	}
	return hrm.NewModel(c.Arch, s.Act, uint64(c.Seed))
}

// voteShare of the limit is the most that is kept free for votes.
const voteShare = 0.25

// train makes steps until the budget ends.
func (r *run) train(ctx context.Context) error {
	if err := r.reserve(); err != nil {
		return err
	}
	l := r.learner
	d := demonstrations{r.problem.Demos, r.views, r.painter, rng.NewStream(uint64(r.Train.Seed), "demonstrations").Rand}
	for r.budget.more(l.StepsDone) {
		if err := ctx.Err(); err != nil {
			if l.StepsDone == 0 {
				return err
			}
			r.answers.End = EndInterrupt
			break
		}
		for i, halted := range l.Carry.Halted {
			if halted {
				d.row(r.rows, i)
			}
		}
		progress := r.budget.progress(l.StepsDone)
		setRates(l, r.Train, l.StepsDone, progress)
		m, err := l.Step(r.rows)
		if err != nil {
			return fmt.Errorf("step %d: %w; a smaller --lr may help", l.StepsDone+1, err)
		}
		r.recent.add(m, len(r.rows.IDs))
		r.report(r.state(progress))
	}
	if r.answers.End == "" {
		r.answers.End = EndTime
		if l.StepsDone == r.budget.steps {
			r.answers.End = EndSteps
		}
	}
	r.answers.Steps, r.answers.TrainSeconds = l.StepsDone, r.Now().Sub(r.budget.begun).Seconds()
	r.answers.Loss, r.answers.Cells, r.answers.Exact = r.recent.loss, r.recent.cells.mean(), r.recent.exact.mean()
	return nil
}

func (r *run) state(progress float64) State {
	return State{Step: r.learner.StepsDone, Progress: progress, Loss: r.recent.loss, Cells: r.recent.cells.mean(), Exact: r.recent.exact.mean()}
}

// reserve measures what votes take, where time counts, and keeps as much free.
func (r *run) reserve() error {
	if r.Limit == 0 {
		return nil
	}
	begin := r.Now()
	if err := r.predict(context.Background(), r.ballots.list[:min(len(r.ballots.list), len(r.rows.IDs))]); err != nil {
		return err
	}
	batches := (len(r.ballots.list) + len(r.rows.IDs) - 1) / len(r.rows.IDs)
	const safety = 1.2
	need := time.Duration(safety * float64(batches) * float64(r.Now().Sub(begin)))
	r.budget.reserve = min(need, time.Duration(voteShare*float64(r.Limit)))
	return nil
}

// predict runs ballots, no more than a batch, through the model.
func (r *run) predict(ctx context.Context, ballots []ballot) error {
	t := r.side * r.side
	for i := range r.rows.IDs {
		inputs := r.rows.Inputs[i*t : (i+1)*t]
		for j := range t {
			r.rows.Labels[i*t+j] = hrm.IgnoreLabel
		}
		if i >= len(ballots) {
			clear(inputs)
			r.rows.IDs[i] = 0
			continue
		}
		b := ballots[i]
		r.painter.input(inputs, b.aug.Apply(r.problem.Tests[b.test]), b.row, b.col)
		r.rows.IDs[i] = int32(b.view) + 1
	}
	_, err := hrm.NewEvaluator(r.learner.Segment).Run(ctx, r.rows, nil)
	return err
}

// vote lets the ballots vote with the averaged weights, where they are kept,
// until all have or time is up. The first batch always votes.
func (r *run) vote(ctx context.Context) error {
	l := r.learner
	if l.EMA != nil {
		l.EMA.Swap(l.Params)
	}
	task := arc.Task{ID: r.problem.ID}
	for _, g := range r.problem.Tests {
		task.Test = append(task.Test, arc.Pair{Input: g})
	}
	counter := voting.NewCounter([]arc.Task{task}, counted(r.ballots.list), r.side, 1)
	for lo := 0; lo < len(r.ballots.list); {
		if lo > 0 && (ctx.Err() != nil || r.budget.late()) {
			break
		}
		hi := min(lo+len(r.rows.IDs), len(r.ballots.list))
		if err := r.predict(context.Background(), r.ballots.list[lo:hi]); err != nil { // an interrupted training has answers too
			return err
		}
		if err := counter.Add(r.ballotRows(lo, hi)); err != nil {
			return err
		}
		lo = hi
		state := r.state(1)
		state.Voted, state.Due = hi, len(r.ballots.list)
		r.report(state)
	}
	r.answers.Tests = testsOf(counter.Votes().Tasks[0])
	return nil
}

// ballotRows reads what the model answered ballots [lo, hi), a row for each of
// their votes.
func (r *run) ballotRows(lo, hi int) voting.Rows {
	t := r.side * r.side
	var rows voting.Rows
	tokens, answer := make([]uint8, t), make([]uint8, t)
	seg := r.learner.Segment
	for i, b := range r.ballots.list[lo:hi] {
		seg.Predicted(i, tokens)
		var height, width int
		if r.SizeRule {
			height, width, _ = r.problem.expected(r.problem.Tests[b.test])
			if augment.SwapsAxes(b.aug.Dihedral) {
				height, width = width, height
			}
		}
		read(answer, tokens, r.side, b, height, width)
		for range r.ballots.times[lo+i] {
			rows.Identifiers = append(rows.Identifiers, int32(lo+i)+1)
			rows.TestIndex = append(rows.TestIndex, int32(b.test))
			rows.QHalt = append(rows.QHalt, float32(seg.Q.QHalt[i]))
			rows.Preds = append(rows.Preds, answer...)
		}
	}
	return rows
}

// recent averages over the last steps.
type recent struct {
	loss         float64
	cells, exact share
	any          bool
}

// share is a decaying mean over rows that halted.
type share struct{ sum, count float64 }

// memory is what a step leaves of the averages.
const memory = 0.95

func (s *share) add(sum, count float64) {
	s.sum, s.count = memory*s.sum+sum, memory*s.count+count
}

func (s share) mean() float64 {
	if s.count == 0 {
		return 0
	}
	return s.sum / s.count
}

func (r *recent) add(m hrm.StepMetrics, rows int) {
	loss := m.LMLoss / float64(rows)
	if !r.any {
		r.loss, r.any = loss, true
	}
	r.loss = memory*r.loss + (1-memory)*loss
	r.cells.add(m.Accuracy, float64(m.Count))
	r.exact.add(m.ExactAccuracy, float64(m.Count))
}
