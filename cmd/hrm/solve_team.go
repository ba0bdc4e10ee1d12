package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"deeploop/arc"
	"deeploop/hrm/solve"
	"deeploop/internal/cli"
	"deeploop/internal/command"
	"deeploop/internal/kernel/pick"
	"deeploop/internal/runlog"
	"deeploop/internal/wording"
)

// team are the backends that answer tasks side by side.
type team struct {
	choices []pick.Choice
}

// openTeam opens as many backends as tasks are answered at a time; they share
// the threads.
func openTeam(s *cli.Streams, c command.Compute, kernelGiven bool, parallel, tasks int) (*team, error) {
	all := threads(c.Threads)
	if parallel < 0 {
		return nil, cli.Usagef("--parallel is %d, expected at least 1, or 0 for one for every %d threads", parallel, threadsPerTask)
	}
	if parallel == 0 {
		parallel = max(1, all/threadsPerTask)
	}
	parallel = min(parallel, tasks)
	if c.Threads >= 0 {
		c.Threads = max(1, all/parallel)
	}
	t := &team{}
	for i := range parallel {
		streams := s
		if i > 0 {
			streams = s.With(s.Out, io.Discard) // says the same
		}
		choice, err := c.Open(streams, kernelGiven)
		if err != nil {
			t.close()
			return nil, err
		}
		t.choices = append(t.choices, choice)
	}
	return t, nil
}

func (t *team) close() {
	for _, c := range t.choices {
		c.Backend.Close()
	}
}

// solved is a task with its answers, nil where there are none.
type solved struct {
	task    *arc.Task
	answers *solve.Answers
	kept    bool // from an earlier run
	err     error
	refused bool // by check, with err
}

// solving is one run of hrm solve.
type solving struct {
	settings   solve.Settings
	checkpoint *solve.Checkpoint
	tasks      []*arc.Task
	team       *team
	work       *work
	again      bool
	progress   *solveProgress
	show       func(*solved) error // one task at a time, as they are answered; may be nil

	mu          sync.Mutex
	done        []*solved // in the order of tasks
	interrupted bool
}

// announce says what will happen and how long it takes.
func (v *solving) announce(w io.Writer) {
	left, before := 0, 0
	for i, t := range v.tasks {
		switch {
		case v.done[i] != nil:
		case v.again || v.work.load(t) == nil:
			left++
		default:
			before++
		}
	}
	how := wording.Count(v.settings.Train.Steps, "step")
	if n := v.settings.Models; n > 1 {
		how = fmt.Sprintf("up to %d models of %s", n, how)
	}
	if v.settings.Train.Steps == 0 {
		how = minutesText(v.settings.Limit)
	} else if v.settings.Limit > 0 {
		how += " or " + minutesText(v.settings.Limit)
	}
	if c := v.checkpoint; c != nil {
		fits := "new task embeddings"
		if v.settings.AllWeights {
			fits = "all weights"
		}
		fmt.Fprintf(w, "from %s (step %d, %s weights, %dx%d canvas): %s are fitted\n", c.Reader.Dir(), c.Reader.Step(), c.Weights, c.Side, c.Side, fits)
	}
	line := tasksText(left + before)
	if left > 0 {
		line += ", " + how + " each"
	}
	if before > 0 {
		line += fmt.Sprintf("; %d answered before in %s (--again answers anew)", before, v.work.dir)
	}
	if n := len(v.team.choices); n > 1 {
		line += fmt.Sprintf(", %d at a time", n)
	}
	if v.settings.Limit > 0 && left > 0 {
		rounds := (left + len(v.team.choices) - 1) / len(v.team.choices)
		line += ", at most " + minutesText(time.Duration(rounds)*v.settings.Limit) + " in all"
	}
	fmt.Fprintln(w, line)
	v.progress.expect(left, len(v.team.choices), v.settings.Limit)
}

func tasksText(n int) string {
	if n == 1 {
		return "1 task"
	}
	return fmt.Sprintf("%d tasks", n)
}

func minutesText(d time.Duration) string {
	if d < 2*time.Minute {
		return d.Round(100 * time.Millisecond).String()
	}
	return d.Round(time.Second).String()
}

// solver is one that works with a backend.
func (v *solving) solver(choice pick.Choice) *solve.Solver {
	return &solve.Solver{
		Settings: v.settings, Backend: choice.Backend, Act: choice.Precision, Now: time.Now, Memory: runlog.PhysicalBytes(),
		Checkpoint: v.checkpoint,
	}
}

// check marks the tasks that cannot be answered with these settings, before any
// is. It is an error where none is left.
func (v *solving) check(s *cli.Streams) error {
	v.done = make([]*solved, len(v.tasks))
	solver := v.solver(v.team.choices[0])
	var errs []error
	for i, t := range v.tasks {
		if !v.again && v.work.load(t) != nil {
			continue
		}
		if err := solver.Check(solve.NewProblem(t)); err != nil {
			v.done[i] = &solved{task: t, err: err, refused: true}
			errs = append(errs, err)
		}
	}
	if len(errs) == len(v.tasks) {
		return errors.Join(errs...)
	}
	for _, err := range errs {
		s.Warnf("left out: %v", err)
	}
	return nil
}

// run answers all tasks.
func (v *solving) run(ctx context.Context) error {
	next := make(chan int)
	var wg sync.WaitGroup
	for _, choice := range v.team.choices {
		solver := v.solver(choice)
		wg.Go(func() {
			for i := range next {
				v.finish(i, v.one(ctx, solver, v.tasks[i]))
			}
		})
	}
	for i := range v.tasks {
		if v.done[i] != nil {
			continue // refused
		}
		select {
		case next <- i:
			continue
		case <-ctx.Done():
		}
		break
	}
	close(next)
	wg.Wait()
	v.progress.close()
	v.interrupted = ctx.Err() != nil
	for i, t := range v.tasks { // not reached, but answered before
		if v.done[i] == nil && !v.again {
			if a := v.work.load(t); a != nil {
				v.done[i] = &solved{task: t, answers: a, kept: true}
			}
		}
	}
	var errs []error
	refused := 0
	for _, d := range v.done {
		switch {
		case d == nil || d.err == nil:
		case d.refused:
			refused++
		default:
			errs = append(errs, d.err)
		}
	}
	if refused > 0 {
		errs = append(errs, fmt.Errorf("solve: %d of %s left out, see above", refused, tasksText(len(v.tasks))))
	}
	if v.interrupted {
		errs = append(errs, fmt.Errorf("solve: %w; the same command goes on", cli.ErrInterrupted))
	}
	return errors.Join(errs...)
}

// one answers a task, or finds it answered.
func (v *solving) one(ctx context.Context, solver *solve.Solver, t *arc.Task) *solved {
	if !v.again {
		if a := v.work.load(t); a != nil {
			return &solved{task: t, answers: a, kept: true}
		}
	}
	a, err := solver.Solve(ctx, solve.NewProblem(t), func(s solve.State) { v.progress.at(t.ID, s) })
	if errors.Is(err, context.Canceled) {
		return &solved{task: t} // before the first step
	}
	if err != nil {
		return &solved{task: t, err: err}
	}
	if a.End != solve.EndInterrupt {
		if err := v.work.save(t, a); err != nil {
			return &solved{task: t, answers: a, err: err}
		}
	}
	return &solved{task: t, answers: a}
}

// finish notes and shows what became of task i.
func (v *solving) finish(i int, d *solved) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.done[i] = d
	v.progress.finished(d.task.ID)
	if v.show == nil || d.answers == nil {
		return
	}
	if err := v.show(d); err != nil && d.err == nil {
		d.err = err
	}
}

// answered counts the tasks that have answers.
func (v *solving) answered() (n int) {
	for _, d := range v.done {
		if d != nil && d.answers != nil {
			n++
		}
	}
	return n
}
