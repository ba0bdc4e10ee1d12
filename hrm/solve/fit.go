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

// fit is one of the models of a run.
type fit struct {
	*run
	number  int
	seed    int
	learner *hrm.Learner
	rows    hrm.Rows
	budget  budget
	recent  recent
}

// modelSeeds is how far the seeds of a problem's models are apart.
const modelSeeds = 1000003

// fit builds model number i, which has its part of the time.
func (r *run) fit(i int) (*fit, error) {
	f := &fit{run: r, number: i, seed: r.Train.Seed + i*modelSeeds}
	now := r.Now()
	f.budget = budget{steps: r.Train.Steps, limit: r.Limit, now: r.Now, begun: now}
	if r.Limit > 0 {
		f.budget.limit = max(1, r.Limit*time.Duration(i+1)/time.Duration(r.Models)-now.Sub(r.begun))
	}
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
	return f, nil
}

// trainAndVote uses the model up.
func (f *fit) trainAndVote(ctx context.Context) error {
	defer f.learner.Segment.Close()
	if err := f.train(ctx); err != nil {
		return err
	}
	return f.vote(ctx)
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
func (f *fit) train(ctx context.Context) error {
	if err := f.reserve(); err != nil {
		return err
	}
	l := f.learner
	end := ""
	d := demonstrations{f.problem.Demos, f.views, f.painter, rng.NewStream(uint64(f.seed), "demonstrations").Rand}
	for f.budget.more(l.StepsDone) {
		if err := ctx.Err(); err != nil {
			if l.StepsDone == 0 {
				return err
			}
			end = EndInterrupt
			break
		}
		for i, halted := range l.Carry.Halted {
			if halted {
				d.row(f.rows, i)
			}
		}
		setRates(l, f.Train, l.StepsDone, f.budget.progress(l.StepsDone))
		m, err := l.Step(f.rows)
		if err != nil {
			return fmt.Errorf("step %d: %w; a smaller --lr may help", l.StepsDone+1, err)
		}
		f.recent.add(m, len(f.rows.IDs))
		f.report(f.state(f.budget.progress(l.StepsDone)))
	}
	if end == "" {
		end = EndTime
		if l.StepsDone == f.budget.steps {
			end = EndSteps
		}
	}
	a := &f.answers
	a.End, a.Steps, a.TrainSeconds = end, a.Steps+l.StepsDone, a.TrainSeconds+f.Now().Sub(f.budget.begun).Seconds()
	a.Loss, a.Cells, a.Exact = a.Loss+f.recent.loss, a.Cells+f.recent.cells.mean(), a.Exact+f.recent.exact.mean()
	a.Models++
	return nil
}

func (f *fit) state(progress float64) State {
	progress = (float64(f.number) + progress) / float64(f.Models)
	return State{Step: f.answers.Steps + f.learner.StepsDone, Progress: progress, Loss: f.recent.loss, Cells: f.recent.cells.mean(), Exact: f.recent.exact.mean()}
}

// reserve measures what votes take, where time counts, and keeps as much free.
func (f *fit) reserve() error {
	if f.Limit == 0 {
		return nil
	}
	begin := f.Now()
	if err := f.predict(context.Background(), f.ballots.list[:min(len(f.ballots.list), len(f.rows.IDs))]); err != nil {
		return err
	}
	batches := (len(f.ballots.list) + len(f.rows.IDs) - 1) / len(f.rows.IDs)
	const safety = 1.2
	need := time.Duration(safety * float64(batches) * float64(f.Now().Sub(begin)))
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

// vote lets the ballots vote with the averaged weights, where they are kept,
// until all have or time is up. The first batch always votes.
func (f *fit) vote(ctx context.Context) error {
	l := f.learner
	if l.EMA != nil {
		l.EMA.Swap(l.Params)
	}
	for lo := 0; lo < len(f.ballots.list); {
		if lo > 0 && (ctx.Err() != nil || f.budget.late()) {
			break
		}
		hi := min(lo+len(f.rows.IDs), len(f.ballots.list))
		if err := f.predict(context.Background(), f.ballots.list[lo:hi]); err != nil { // an interrupted training has answers too
			return err
		}
		if err := f.counter.Add(f.ballotRows(lo, hi)); err != nil {
			return err
		}
		lo = hi
		state := f.state(1)
		state.Step, state.Voted, state.Due = f.answers.Steps, f.number*len(f.ballots.list)+hi, f.Models*len(f.ballots.list)
		f.report(state)
	}
	return nil
}

// ballotRows reads what the model answered ballots [lo, hi), a row for each of
// their votes.
func (f *fit) ballotRows(lo, hi int) voting.Rows {
	t := f.side * f.side
	var rows voting.Rows
	tokens, answer := make([]uint8, t), make([]uint8, t)
	seg := f.learner.Segment
	for i, b := range f.ballots.list[lo:hi] {
		seg.Predicted(i, tokens)
		var height, width int
		if f.SizeRule {
			height, width, _ = f.problem.expected(f.problem.Tests[b.test])
			if augment.SwapsAxes(b.aug.Dihedral) {
				height, width = width, height
			}
		}
		read(answer, tokens, f.side, b, height, width)
		for range f.ballots.times[lo+i] {
			rows.Identifiers = append(rows.Identifiers, int32(lo+i)+1)
			rows.TestIndex = append(rows.TestIndex, int32(b.test))
			rows.QHalt = append(rows.QHalt, float32(seg.Q.QHalt[i]))
			rows.Preds = append(rows.Preds, answer...)
		}
	}
	return rows
}
