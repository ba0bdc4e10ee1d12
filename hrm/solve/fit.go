package solve

import (
	"context"
	"fmt"
	"time"

	"deeploop/augment"
	"deeploop/hrm"
	"deeploop/internal/rng"
	"deeploop/voting"
)

// fit is one of the models of a run. It has a part of the time, and goes on in
// the next one while it has not learned its demonstrations.
type fit struct {
	*run
	seed    int
	learner *hrm.Learner
	rows    hrm.Rows
	drawn   demonstrations
	recent  recent

	first     int // part it began in, 0 to Models-1
	part      int // at work
	budget    budget
	before    int           // steps made before this part
	batchTime time.Duration // that a batch of ballots took
}

// modelSeeds is how far the seeds of a problem's models are apart.
const modelSeeds = 1000003

// fit builds the model that begins in part i.
func (r *run) fit(i int) (*fit, error) {
	f := &fit{run: r, first: i, seed: r.Train.Seed + i*modelSeeds, recent: recent{of: map[Treatment]*share{}}}
	f.begin(i)
	c := r.config
	c.Seed = f.seed
	m, err := r.model(c)
	if err != nil {
		return nil, err
	}
	if f.learner, err = hrm.NewLearner(m, r.Backend, c, 1); err != nil {
		return nil, err
	}
	f.learner.Frozen = r.Checkpoint != nil && !r.AllWeights
	f.rows = hrm.NewRows(c.GlobalBatchSize, c.Arch.SeqLen)
	f.drawn = demonstrations{r.problem.Demos, r.views, r.open, r.painter, rng.NewStream(uint64(f.seed), "demonstrations").Rand}
	return f, nil
}

// begin gives the model part i of the time.
func (f *fit) begin(i int) {
	now := f.Now()
	f.part, f.budget = i, budget{steps: f.Train.Steps, limit: f.Limit, now: f.Now, begun: now}
	if f.Limit > 0 {
		f.budget.limit = max(1, f.Limit*time.Duration(i+1)/time.Duration(f.Models)-now.Sub(f.run.begun))
	}
	if f.learner != nil {
		f.before = f.learner.StepsDone
	}
}

func (f *fit) close() { f.learner.Segment.Close() }

// done is how many steps this part has made.
func (f *fit) done() int { return f.learner.StepsDone - f.before }

func (s *Solver) model(c hrm.TrainConfig) (*hrm.Model, error) {
	if s.Checkpoint != nil {
		return s.Checkpoint.model(c.Arch, s.Act, s.Init)
	}
	return hrm.NewModel(c.Arch, s.Act, uint64(c.Seed))
}

// voteShare of the limit is the most that is kept free for votes.
const voteShare = 0.25

// train makes steps until the budget ends.
func (f *fit) train(ctx context.Context) error {
	if err := f.reserve(); err != nil {
		return err
	}
	l := f.learner
	end := ""
	for f.budget.more(f.done()) {
		if err := ctx.Err(); err != nil {
			if l.StepsDone == 0 {
				return err
			}
			end = EndInterrupt
			break
		}
		for i, halted := range l.Carry.Halted {
			if halted {
				f.drawn.row(f.rows, i)
			}
		}
		setRates(l, f.Train, l.StepsDone, f.budget.progress(f.done()))
		m, err := l.Step(f.rows)
		if err != nil {
			return fmt.Errorf("step %d: %w; a smaller --lr may help", l.StepsDone+1, err)
		}
		f.recent.add(m, len(f.rows.IDs))
		f.recent.rows(l, f.views)
		f.report(f.state(f.answers.Steps+f.done(), f.budget.progress(f.done())))
	}
	if end == "" {
		end = EndTime
		if f.done() == f.budget.steps {
			end = EndSteps
		}
	}
	a := &f.answers
	a.End, a.Steps, a.TrainSeconds = end, a.Steps+f.done(), a.TrainSeconds+f.Now().Sub(f.budget.begun).Seconds()
	return nil
}

// state is the run's after so many steps of all models, this far in the part.
func (f *fit) state(step int, progress float64) State {
	progress = (float64(f.part) + progress) / float64(f.Models)
	return State{Step: step, Progress: progress, Loss: f.recent.loss, Halted: f.recent.cells.count > 0, Cells: f.recent.cells.mean(), Exact: f.recent.exact.mean()}
}

// reserve keeps free what votes take, where time counts. It is measured before
// the first step, as it uses the rows and states of a training up.
func (f *fit) reserve() error {
	if f.Limit == 0 {
		return nil
	}
	rows, due := len(f.rows.IDs), len(f.ballots.of(f.open))
	if f.batchTime == 0 {
		begin := f.Now()
		if err := f.predict(context.Background(), f.ballots.list[:min(len(f.ballots.list), rows)]); err != nil {
			return err
		}
		f.batchTime = f.Now().Sub(begin)
	}
	const safety = 1.2
	need := time.Duration(safety * float64((due+rows-1)/rows) * float64(f.batchTime))
	f.budget.reserve = min(need, time.Duration(voteShare*float64(f.budget.limit)))
	return nil
}

// predict runs ballots, no more than a batch, through the model.
func (f *fit) predict(ctx context.Context, ballots []ballot) error {
	t := f.side * f.side
	for i := range f.rows.IDs {
		inputs := f.rows.Inputs[i*t : (i+1)*t]
		for j := range t {
			f.rows.Labels[i*t+j] = hrm.IgnoreLabel
		}
		if i >= len(ballots) {
			clear(inputs)
			f.rows.IDs[i] = 0
			continue
		}
		b := ballots[i]
		f.painter.input(inputs, b.aug.Apply(f.problem.Tests[b.test]), b.row, b.col)
		f.rows.IDs[i] = int32(b.view) + 1
	}
	_, err := hrm.NewEvaluator(f.learner.Segment).Run(ctx, f.rows, nil)
	return err
}

// vote ends the model: the ballots of treatments that are not hopeless vote with
// the averaged weights, where they are kept, until all have or time is up. The
// first batch always votes.
func (f *fit) vote(ctx context.Context) error {
	l, a := f.learner, &f.answers
	a.Models++
	a.Loss, a.Cells, a.Exact = a.Loss+f.recent.loss, a.Cells+f.recent.cells.mean(), a.Exact+f.recent.exact.mean()
	for t, s := range f.recent.of {
		f.shares[t] = append(f.shares[t], s.mean())
	}
	if f.recent.learned() { // later models are spared what this one could not learn
		f.open = f.hopeful()
	}
	due := f.ballots.of(f.hopeful())
	if l.EMA != nil {
		l.EMA.Swap(l.Params)
	}
	for lo := 0; lo < len(due); {
		if lo > 0 && (ctx.Err() != nil || f.budget.late()) {
			break
		}
		hi := min(lo+len(f.rows.IDs), len(due))
		if err := f.predict(context.Background(), due[lo:hi]); err != nil { // an interrupted training has answers too
			return err
		}
		if err := f.counter.Add(f.ballotRows(due[lo:hi])); err != nil {
			return err
		}
		lo = hi
		state := f.state(a.Steps, 1)
		state.Voted, state.Due = hi, len(due)
		f.report(state)
	}
	return nil
}

// hopeful lists the views whose treatments are not hopeless.
func (f *fit) hopeful() []int {
	var views []int
	for i, v := range f.views {
		if !f.recent.hopeless(v.Treatment) {
			views = append(views, i)
		}
	}
	return views
}

// ballotRows reads what the model answered ballots, a row for each of their
// votes.
func (f *fit) ballotRows(ballots []ballot) voting.Rows {
	t := f.side * f.side
	var rows voting.Rows
	tokens, answer := make([]uint8, t), make([]uint8, t)
	seg := f.learner.Segment
	for i, b := range ballots {
		seg.Predicted(i, tokens)
		var height, width int
		if f.SizeRule {
			height, width, _ = f.problem.expected(f.problem.Tests[b.test])
			if augment.SwapsAxes(b.aug.Dihedral) {
				height, width = width, height
			}
		}
		read(answer, tokens, f.side, b, height, width)
		for range f.ballots.times[b.number] {
			rows.Identifiers = append(rows.Identifiers, int32(b.number)+1)
			rows.TestIndex = append(rows.TestIndex, int32(b.test))
			rows.QHalt = append(rows.QHalt, float32(seg.Q.QHalt[i]))
			rows.Preds = append(rows.Preds, answer...)
		}
	}
	return rows
}
