package train

import (
	"context"
	"time"

	"deeploop/internal/checkpoint"
	"deeploop/internal/runlog"
)

// Trainer is a model under training, as the loop sees it. Its methods are
// called from one goroutine.
type Trainer interface {
	// Step makes one optimizer step, the step'th counted from 1: the loop
	// passes the number, also after a resume. A gradient or weight that is
	// not finite is returned as *optim.NonFinite. ctx is not cancelled by an
	// interruption, which waits for the end of the step.
	Step(ctx context.Context, step int) (Result, error)

	// Evaluate measures the present weights and calls progress now and then.
	// It leaves everything that State lists as it was. When ctx is cancelled
	// it returns ctx's error soon.
	Evaluate(ctx context.Context, progress func(done, total int)) (runlog.Metrics, error)

	// Check returns an error (*optim.NonFinite) when a weight, an average or
	// a moment is not finite. The loop calls it before every save, so that a
	// broken state never replaces a good one.
	Check() error

	// State lists, by reference, everything the next steps depend on. It is
	// called before every save and load, so buffers may change places between
	// steps; names and shapes stay the same.
	State(set *checkpoint.Set)

	// Restored is called once after what State lists was overwritten from a
	// checkpoint, to bring along what is derived from it (packed weights,
	// the loader's place). fresh names the groups that were not loaded.
	Restored(fresh ...string) error
}

// Result is what one step reports.
type Result struct {
	Loss    float64        // checked: NaN or Inf stops the run
	Tokens  int            // positions processed, for the speed shown
	Metrics runlog.Metrics // written to metrics.jsonl
}

// Options are the settings of one call of Run.Train.
type Options struct {
	Steps        int           // length of the whole schedule
	StopAfter    int           // save and stop after so many more steps; 0: never
	MaxTime      time.Duration // save, evaluate and stop after so much time; 0: never
	EvalEvery    int           // evaluate every so many steps and at the end; 0: never
	SaveEvery    int           // save every so many steps; 0: see SaveInterval
	SaveInterval time.Duration // save when so much time passed; 0: never. The end is always saved
	Keep         int           // checkpoints kept beside the last and the best

	// BestMetric is the evaluation metric that picks the best checkpoint:
	// the highest value, or the lowest with BestIsLow. "" keeps no best.
	BestMetric string
	BestIsLow  bool

	// Meta goes into every checkpoint. On resume its Kind, Config and
	// Identity are compared with the checkpoint's.
	Meta checkpoint.Meta
	// MayChange are the keys of Meta.Config that may differ on resume. Any
	// other would change what is trained and is refused.
	MayChange []Change
	// ResetTaskEmbeddings allows another list of dataset identifiers on
	// resume: task embeddings, carry and loader position start afresh.
	ResetTaskEmbeddings bool
	// SameDataOnly: the command has no flag for that, so messages name none.
	SameDataOnly bool

	// Files are written into the run's folder when training starts, by name.
	Files map[string][]byte
	// Continue is the command that goes on with this run, for messages.
	Continue string

	// Follower, if set, gets every line of metrics.jsonl too. When it fails, the
	// training warns and goes on without it.
	Follower Follower

	Progress *runlog.Progress // nil: silent
	Now      func() time.Time // the clock
	// FreeBytes returns the free disk space at a path. Nil asks the system.
	FreeBytes func(path string) (uint64, error)
}

// Change is a key that a resumed run may have otherwise than before.
type Change struct {
	Key string // dotted
	// Follows says what follows from it, for a warning; "" is nothing.
	Follows string
	// Measures says that evaluations measure something else then: the best
	// checkpoint so far compares with no later one and is given up.
	Measures bool
}

// Follower is told what a run records.
type Follower interface {
	// Begin is called once, before the first line of a session that goes on
	// after this step. lines are those of metrics.jsonl so far, of steps up to
	// it: what was recorded of later ones is void.
	Begin(step int, lines []runlog.Line) error
	Line(runlog.Line) error
}
