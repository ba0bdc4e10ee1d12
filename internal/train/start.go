package train

import (
	"fmt"
	"strings"

	"deeploop/internal/checkpoint"
	"deeploop/internal/cli"
	"deeploop/internal/runlog"
)

// start brings trainer, metrics and folder to the step where training begins.
func (l *loop) start() error {
	l.began = l.o.Now()
	l.savedAt = l.began
	l.saved = -1
	if err := l.run.store.Room(l.state()); err != nil && l.run.folder.How != Replace { // which makes room first
		return fmt.Errorf("start training: no room for a checkpoint: %w", err)
	}
	event := "start"
	var err error
	if ck := l.run.from; ck != nil {
		event = "resume"
		err = l.resume(ck)
	} else {
		err = l.begin()
	}
	if err != nil {
		return err
	}
	for name, b := range l.o.Files {
		if err := checkpoint.WriteFile(l.run.path(name), b); err != nil {
			return fmt.Errorf("write %s of the run: %w", name, err)
		}
	}
	return l.session(event, "")
}

func (l *loop) begin() (err error) {
	switch l.run.folder.How {
	case Resume:
		l.p.Notef("%s holds no checkpoint: starting from the beginning", l.run.folder.Dir)
	case Replace:
		if err := l.run.clear(); err != nil {
			return err
		}
	}
	l.run.log, err = runlog.Open(l.run.path(MetricsFile), nil)
	return err
}

func (l *loop) resume(ck *checkpoint.Reader) error {
	fresh, err := l.fits(ck)
	if err != nil {
		return err
	}
	if err := ck.Load(l.state(), fresh...); err != nil {
		return err
	}
	if err := l.t.Restored(fresh...); err != nil {
		return fmt.Errorf("resume from %s: %w", ck.Dir(), err)
	}
	l.step, l.first, l.saved, l.lastGood = ck.Step(), ck.Step(), ck.Step(), ck.Dir()
	if len(fresh) > 0 {
		l.saved = -1 // the state in memory is no longer that of the file
	}
	if l.index, err = l.run.store.Index(); err != nil {
		return err
	}
	// Open files would keep the disk space of a checkpoint that a later save
	// removes (and on Windows keep it from being removed).
	l.run.from = nil
	if err := ck.Close(); err != nil {
		return fmt.Errorf("resume from %s: %w", ck.Dir(), err)
	}
	evaluated := l.index.Evaluated
	l.run.log, err = runlog.Open(l.run.path(MetricsFile), func(line runlog.Line) bool {
		return line.Step < l.step || line.Step == l.step && (line.Event != runlog.Eval || evaluated >= l.step)
	})
	if err != nil {
		return err
	}
	if last := l.run.log.LastStep(); last < l.step {
		l.p.Warnf("%s ends at step %d, the checkpoint is at step %d: the lines between are lost", l.run.path(MetricsFile), last, l.step)
	}
	l.p.Notef("resuming %s at step %d of %d", l.run.folder.Dir, l.step, l.o.Steps)
	return nil
}

// fits compares a checkpoint with settings and data, and returns the groups
// that must start afresh.
func (l *loop) fits(ck *checkpoint.Reader) (fresh []string, err error) {
	have, want := ck.Meta(), l.o.Meta
	if have.Kind != want.Kind {
		return nil, cli.Usagef("resume from %s: it holds a model of kind %q, this command trains %q", ck.Dir(), have.Kind, want.Kind)
	}
	if ck.Step() > l.o.Steps {
		return nil, cli.Usagef("resume from %s: it is at step %d, beyond the schedule's %d steps; raise --steps", ck.Dir(), ck.Step(), l.o.Steps)
	}
	changes, err := checkpoint.ConfigChanges(have.Config, want.Config, l.o.MayChange...)
	if err != nil {
		return nil, fmt.Errorf("resume from %s: %w", ck.Dir(), err)
	}
	if len(changes) > 0 {
		return nil, cli.Usagef("resume from %s: settings differ from those of the run:\n  %s\nleave them as they were, or start another run with --run",
			ck.Dir(), strings.Join(changes, "\n  "))
	}
	if have.Identity == nil || want.Identity == nil {
		return nil, nil
	}
	if err := have.Identity.Check(*want.Identity); err != nil {
		if !l.o.ResetTaskEmbeddings {
			return nil, fmt.Errorf("resume from %s: %w", ck.Dir(), err)
		}
		l.p.Warnf("%d task embeddings start afresh: the dataset has other ids than the checkpoint's %d", want.Identity.Count, have.Identity.Count)
		return []string{checkpoint.TaskEmbeddings, checkpoint.Carry}, nil
	}
	return nil, nil
}

// BrokenError is a run stopped because a number is not finite. Nothing was
// saved.
type BrokenError struct {
	Step     int
	LastGood string // folder of the last checkpoint, "" without one
	Err      error  // what is broken: *optim.NonFinite inside
}

func (e *BrokenError) Error() string {
	s := fmt.Sprintf("step %d: %s; stopped without saving", e.Step, strings.ReplaceAll(e.Err.Error(), "\n", "; "))
	if e.LastGood == "" {
		return s + "; there is no earlier checkpoint"
	}
	n := ""
	if step, ok := checkpoint.StepOf(e.LastGood); ok {
		n = fmt.Sprintf(" (step %d)", step)
	}
	return s + fmt.Sprintf("; the last good checkpoint is %s%s", e.LastGood, n)
}

func (e *BrokenError) Unwrap() error { return e.Err }
