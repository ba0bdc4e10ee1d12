package train

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"deeploop/internal/checkpoint"
	"deeploop/internal/cli"
	"deeploop/internal/runlog"
	"deeploop/internal/wording"
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
	if err := l.session(event, ""); err != nil { // first, so that the folder shows what it is
		return err
	}
	for name, b := range l.o.Files {
		if err := checkpoint.WriteFile(l.run.path(name), b); err != nil {
			return fmt.Errorf("write %s of the run: %w", name, err)
		}
	}
	l.run.log, err = runlog.Open(l.run.path(MetricsFile), l.keep)
	if err != nil {
		return err
	}
	if last := l.run.log.LastStep(); last < l.step {
		l.p.Warnf("%s ends at step %d, the checkpoint is at step %d: the lines between are lost", l.run.path(MetricsFile), last, l.step)
	}
	return l.follow()
}

// follow begins what follows the metrics.
func (l *loop) follow() error {
	if l.o.Follower == nil {
		return nil
	}
	lines, err := runlog.Read(l.run.path(MetricsFile))
	if err != nil {
		return err
	}
	l.followed(l.o.Follower.Begin(l.step, lines))
	return nil
}

// followed ends it where it has failed.
func (l *loop) followed(err error) {
	if err != nil {
		l.p.Warnf("%v; the training goes on without it", err)
		l.o.Follower = nil
	}
}

// keep accepts the metrics that the state in memory has seen.
func (l *loop) keep(line runlog.Line) bool {
	return line.Step < l.step || line.Step == l.step && (line.Event != runlog.Eval || l.index.Evaluated >= l.step)
}

func (l *loop) begin() error {
	const from = "holds no checkpoint: starting from the beginning"
	switch {
	case l.run.folder.How == Resume && l.run.made: // a script may always resume, but a name may be mistyped
		l.p.Warnf("run folder %s did not exist and %s%s", l.run.folder.Dir, from, l.run.near())
	case l.run.folder.How == Resume:
		l.p.Notef("%s %s", l.run.folder.Dir, from)
	case l.run.folder.How == Replace:
		return l.run.clear()
	}
	return nil
}

func (l *loop) resume(ck *checkpoint.Reader) error {
	fresh, err := l.fits(ck)
	if err != nil {
		return err
	}
	at := ck.Step()
	if alone := weightsAlone(ck); len(alone) > 0 {
		fresh, at = append(fresh, alone...), 0
		made := ""
		if ck.Step() > 0 {
			made = fmt.Sprintf("; its %s were made elsewhere", wording.Count(ck.Step(), "step"))
		}
		l.p.Notef("%s holds weights alone: training starts from them at step 0, with a fresh optimizer and the whole schedule of %s, warm-up included%s",
			ck.Dir(), wording.Count(l.o.Steps, "step"), made)
	}
	l.p.Doing("reading checkpoint " + ck.Dir())
	if err := ck.Load(l.state(), fresh...); err != nil {
		return l.run.store.Advise(err)
	}
	if err := l.t.Restored(fresh...); err != nil {
		return fmt.Errorf("resume from %s: %w", ck.Dir(), err)
	}
	l.step, l.first, l.saved, l.lastGood = at, at, at, ck.Dir()
	if l.index, err = l.run.store.Index(); err != nil {
		return err
	}
	if len(fresh) > 0 {
		l.saved = -1 // the state in memory is no longer that of the file
		l.index.Best, l.run.store.ForgetBest = nil, true
	}
	// Open files would keep the disk space of a checkpoint that a later save
	// removes (and on Windows keep it from being removed).
	l.run.from = nil
	if err := ck.Close(); err != nil {
		return fmt.Errorf("resume from %s: %w", ck.Dir(), err)
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
	alone := len(weightsAlone(ck)) > 0
	if ck.Step() > l.o.Steps && !alone {
		return nil, cli.Usagef("resume from %s: it is at step %d, beyond the schedule's %d steps; raise --steps", ck.Dir(), ck.Step(), l.o.Steps)
	}
	if alone && have.Tokenizer != nil && want.Tokenizer != nil && !sameJSON(have.Tokenizer, want.Tokenizer) {
		return nil, cli.Usagef("resume from %s: the model has another tokenizer than the dataset, so the same ids mean other text; name a dataset of its tokenizer with --data", ck.Dir())
	}
	if err := l.changes(ck, alone); err != nil {
		return nil, err
	}
	return l.sameData(ck)
}

// changes compares the settings of a checkpoint with the present ones: it warns
// of what may change and refuses what may not. Of weights alone nothing but the
// model is continued.
func (l *loop) changes(ck *checkpoint.Reader, alone bool) error {
	all, err := checkpoint.ConfigChanges(ck.Meta().Config, l.o.Meta.Config)
	if err != nil {
		return fmt.Errorf("resume from %s: %w", ck.Dir(), err)
	}
	var refused, warnings []string
	for _, c := range all {
		at := slices.IndexFunc(l.o.MayChange, func(may Change) bool { return may.Key == c.Key })
		switch {
		case alone && !strings.HasPrefix(c.Key, "arch."):
		case at < 0:
			refused = append(refused, c.String())
		case l.o.MayChange[at].Follows != "":
			warnings = append(warnings, c.String()+": "+l.o.MayChange[at].Follows)
			l.run.store.ForgetBest = l.run.store.ForgetBest || l.o.MayChange[at].Measures
		}
	}
	if len(refused) > 0 {
		return cli.Usagef("resume from %s: settings differ from those of the run and would change what it trains (%s); leave them as they were, or start another run with --run",
			ck.Dir(), strings.Join(refused, "; "))
	}
	for _, w := range warnings {
		l.p.Warnf("%s", w)
	}
	return nil
}

// weightsAlone returns the groups that the checkpoint of an imported model
// lacks, nil of one that a training wrote. Training starts at step 0 of such a
// one, whatever its own step: a fresh optimizer needs the warm-up.
func weightsAlone(ck *checkpoint.Reader) (missing []string) {
	if ck.HasGroup(checkpoint.Optimizer) {
		return nil
	}
	for _, g := range []string{checkpoint.Optimizer, checkpoint.EMA, checkpoint.Carry, checkpoint.Streams} {
		if !ck.HasGroup(g) {
			missing = append(missing, g)
		}
	}
	return missing
}

// sameJSON compares what two documents say.
func sameJSON(a, b json.RawMessage) bool {
	var x, y any
	return json.Unmarshal(a, &x) == nil && json.Unmarshal(b, &y) == nil && reflect.DeepEqual(x, y)
}

// sameData compares the data of a checkpoint with the present one, first the
// identifiers and then the content.
func (l *loop) sameData(ck *checkpoint.Reader) (fresh []string, err error) {
	have, want := ck.Meta(), l.o.Meta
	afresh := []string{checkpoint.TaskEmbeddings, checkpoint.Carry}
	if have.Identity != nil && want.Identity != nil {
		if err := have.Identity.Check(*want.Identity); err != nil {
			if !l.o.ResetTaskEmbeddings {
				return nil, fmt.Errorf("resume from %s: %w", ck.Dir(), err)
			}
			l.p.Warnf("%d task embeddings start afresh: the dataset has other ids than the checkpoint's %d", want.Identity.Count, have.Identity.Count)
			return afresh, nil
		}
	}
	if have.DatasetHash == "" || want.DatasetHash == "" || have.DatasetHash == want.DatasetHash {
		return nil, nil
	}
	if l.o.SameDataOnly {
		return nil, cli.Usagef("resume from %s: it was trained on a dataset with hash %s, this one has hash %s, so its place in the data means nothing here; "+
			"name the dataset it was trained on with --data, or start another run with --run",
			ck.Dir(), have.DatasetHash, want.DatasetHash)
	}
	if !l.o.ResetTaskEmbeddings {
		return nil, cli.Usagef("resume from %s: it was trained on a dataset with hash %s, this one has the same ids but other rows (hash %s), so its place in the data means nothing here; "+
			"name the dataset it was trained on with --data, or go on with this one with --reset-task-embeddings",
			ck.Dir(), have.DatasetHash, want.DatasetHash)
	}
	l.p.Warnf("task embeddings and the place in the data start afresh: the dataset has other rows (hash %s) than the one trained on (hash %s)",
		want.DatasetHash, have.DatasetHash)
	return afresh, nil
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
