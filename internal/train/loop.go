package train

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"deeploop/internal/checkpoint"
	"deeploop/internal/cli"
	"deeploop/internal/optim"
	"deeploop/internal/runlog"
	"deeploop/internal/wording"
)

// Train runs t from the beginning, or from the checkpoint the folder was
// opened with, to step o.Steps, and leaves a checkpoint of where it stopped.
//
// It returns an error that wraps cli.ErrInterrupted when ctx was cancelled
// (after finishing the step and saving), a *BrokenError when a number is not
// finite (without saving), and a bad-input error when the checkpoint does not
// fit settings, model or data.
func (r *Run) Train(ctx context.Context, o Options, t Trainer) error {
	if o.Steps < 1 {
		return cli.Usagef("the schedule has %d steps, at least 1 expected (--steps)", o.Steps)
	}
	r.store.Keep, r.store.FreeBytes = o.Keep, o.FreeBytes
	l := &loop{run: r, o: o, t: t, p: o.Progress}
	defer l.p.End()
	if ctx.Err() != nil { // while the model was built: nothing is touched
		return fmt.Errorf("%w before the first step", cli.ErrInterrupted)
	}
	if err := l.start(); err != nil {
		return err
	}
	l.limits()
	err := l.steps(ctx)
	l.p.End()
	note := Finished
	switch {
	case err != nil:
		note = err.Error()
	case l.step < o.Steps:
		note = "stopped before the end of the schedule, as asked"
	}
	return errors.Join(err, r.log.Sync(), l.session("stop", note))
}

// Finished is the note of a session that reached the end of the schedule.
const Finished = "finished"

// loop is one call of Train.
type loop struct {
	run *Run
	o   Options
	t   Trainer
	p   *runlog.Progress

	step     int // steps made
	first    int // steps made before this session
	saved    int // step of the last checkpoint, -1 without one
	savedAt  time.Time
	began    time.Time
	stepTime time.Duration // spent in Trainer.Step
	tokens   int
	index    checkpoint.Index
	lastGood string // folder of the last checkpoint
}

// limits tells the progress line where this session ends before the schedule.
func (l *loop) limits() {
	if l.p == nil {
		return
	}
	if l.o.StopAfter > 0 {
		l.p.Last = l.first + l.o.StopAfter
	}
	if l.o.MaxTime > 0 {
		l.p.Deadline = l.began.Add(l.o.MaxTime)
	}
}

func (l *loop) steps(ctx context.Context) error {
	if l.evalDue() && l.saved == l.step && l.index.Evaluated < l.step { // interrupted before it
		if err := l.evaluate(ctx); err != nil {
			return err
		}
	}
	l.toNext()
	for l.step < l.o.Steps {
		if ctx.Err() != nil {
			return l.interrupted()
		}
		if err := l.one(ctx); err != nil {
			return err
		}
		timeUp := l.o.MaxTime > 0 && l.o.Now().Sub(l.began) >= l.o.MaxTime
		stopped := timeUp || l.o.StopAfter > 0 && l.step-l.first >= l.o.StopAfter
		if ctx.Err() != nil || stopped || l.step == l.o.Steps || l.saveDue() {
			if err := l.save(); err != nil {
				return err
			}
		}
		if l.evalDue() || timeUp && l.o.EvalEvery > 0 {
			if err := l.evaluate(ctx); err != nil {
				return err
			}
		}
		if ctx.Err() != nil && l.step < l.o.Steps {
			return l.interrupted()
		}
		if stopped && l.step < l.o.Steps {
			l.p.Notef("stopped after %s, at step %d of %d; continue with: %s", wording.Count(l.step-l.first, "step"), l.step, l.o.Steps, l.o.Continue)
			return nil
		}
	}
	l.p.Notef("finished at step %d of %d; checkpoint in %s", l.step, l.o.Steps, l.lastGood)
	return nil
}

// one makes a step and records it.
func (l *loop) one(ctx context.Context) error {
	start := l.o.Now()
	res, err := l.t.Step(context.WithoutCancel(ctx), l.step+1)
	if err != nil {
		return l.broken(l.step+1, err)
	}
	l.step++
	l.stepTime += l.o.Now().Sub(start)
	l.tokens += res.Tokens
	if err := l.record(runlog.Train, res.Metrics); err != nil {
		return err
	}
	l.p.Step(l.step, l.o.Steps, res.Metrics, res.Tokens)
	if math.IsNaN(res.Loss) || math.IsInf(res.Loss, 0) {
		return l.broken(l.step, errors.Join(&optim.NonFinite{What: "loss", Index: -1, Value: res.Loss}, l.t.Check()))
	}
	return nil
}

// record writes the metrics of the present step.
func (l *loop) record(event string, m runlog.Metrics) error {
	if err := l.run.log.Write(l.step, event, m); err != nil {
		return err
	}
	if l.o.Follower != nil {
		l.followed(l.o.Follower.Line(runlog.Line{Step: l.step, Event: event, Values: m}))
	}
	return nil
}

func (l *loop) evalDue() bool {
	return l.o.EvalEvery > 0 && l.step > 0 && (l.step%l.o.EvalEvery == 0 || l.step == l.o.Steps)
}

// saveDue: every evaluation follows a save, so that a run killed while it
// evaluates loses nothing and the best checkpoint needs no second writing.
func (l *loop) saveDue() bool {
	return l.evalDue() ||
		l.o.SaveEvery > 0 && l.step%l.o.SaveEvery == 0 ||
		l.o.SaveInterval > 0 && l.o.Now().Sub(l.savedAt) >= l.o.SaveInterval
}

// state lists the trainer's state as it lies in memory now; buffers may change
// places between steps.
func (l *loop) state() *checkpoint.Set {
	set := &checkpoint.Set{}
	l.t.State(set)
	return set
}

func (l *loop) save() error {
	if l.saved == l.step {
		return nil
	}
	l.p.Doing(fmt.Sprintf("saving the checkpoint of step %d", l.step))
	if err := l.t.Check(); err != nil {
		return l.broken(l.step, err)
	}
	if err := l.run.log.Sync(); err != nil { // the metrics must reach as far as the checkpoint
		return fmt.Errorf("write metrics: %w", err)
	}
	ref, err := l.run.store.Save(l.step, l.o.Meta, l.state())
	if err != nil {
		return fmt.Errorf("%w; continue with: %s", err, l.o.Continue)
	}
	l.saved, l.savedAt, l.lastGood = l.step, l.o.Now(), l.run.store.Path(ref)
	l.toNext()
	return l.session("checkpoint", "")
}

func (l *loop) evaluate(ctx context.Context) error {
	l.p.Doing(fmt.Sprintf("evaluating at step %d", l.step))
	m, err := l.t.Evaluate(ctx, l.p.Counter(fmt.Sprintf("evaluate at step %d", l.step)))
	if err != nil {
		if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
			return l.interrupted()
		}
		return fmt.Errorf("evaluate at step %d: %w", l.step, err)
	}
	if err := l.record(runlog.Eval, m); err != nil {
		return err
	}
	if err := l.run.log.Sync(); err != nil {
		return fmt.Errorf("write metrics: %w", err)
	}
	l.p.Metrics(fmt.Sprintf("evaluation at step %d", l.step), m)
	if l.index, err = l.run.store.Index(); err != nil {
		return err
	}
	if l.run.store.ForgetBest { // no save since the resume
		l.index.Best = nil
	}
	if err := l.run.store.MarkEvaluated(l.step, l.better(m)); err != nil {
		return err
	}
	l.run.store.ForgetBest = false
	l.toNext()
	return nil
}

// toNext starts the clock of the next step, which may take long.
func (l *loop) toNext() {
	l.p.Begin()
	if l.step < l.o.Steps {
		l.p.Doing(fmt.Sprintf("step %d of %d", l.step+1, l.o.Steps))
	}
}

// better returns the new best checkpoint, nil when the old one stays. Equal
// values keep the earlier one.
func (l *loop) better(m runlog.Metrics) *checkpoint.Best {
	v, ok := m[l.o.BestMetric]
	if !ok || math.IsNaN(v) || math.IsInf(v, 0) {
		return nil
	}
	if old := l.index.Best; old != nil && old.Metric == l.o.BestMetric && (v == old.Value || (v < old.Value) != l.o.BestIsLow) {
		return nil
	}
	return &checkpoint.Best{Ref: *l.index.Last, Metric: l.o.BestMetric, Value: v}
}

// broken explains a failed step; one that failed for another reason than
// broken numbers keeps its error.
func (l *loop) broken(step int, err error) error {
	var nf *optim.NonFinite
	if errors.As(err, &nf) {
		return &BrokenError{Step: step, LastGood: l.lastGood, Err: err}
	}
	return fmt.Errorf("step %d: %w", step, err)
}

func (l *loop) interrupted() error {
	if l.step == l.first && l.saved < 0 {
		return fmt.Errorf("%w before the first step", cli.ErrInterrupted)
	}
	return fmt.Errorf("%w at step %d of %d, saved in %s; continue with: %s", cli.ErrInterrupted, l.step, l.o.Steps, l.lastGood, l.o.Continue)
}

func (l *loop) session(event, note string) error {
	now := l.o.Now()
	s := runlog.Session{Time: now, Event: event, Step: l.step, Seconds: now.Sub(l.began).Seconds(), Memory: runlog.PeakBytes(), Note: note}
	if l.stepTime > 0 {
		s.TokensS = float64(l.tokens) / l.stepTime.Seconds()
	}
	return runlog.AppendSession(l.run.path(SessionsFile), s)
}
