package command

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"deeploop/internal/checkpoint"
	"deeploop/internal/cli"
	"deeploop/internal/kernel"
	"deeploop/internal/runlog"
	"deeploop/internal/train"
	"deeploop/internal/wording"
)

// Training is a program's command train: what differs between programs.
type Training[T Config] struct {
	Program string // its name, for commands in messages
	Kind    string // of its models, in checkpoints

	Preset func(name string) (T, error)
	// Stored returns the configuration in a checkpoint.
	Stored func(ck *checkpoint.Reader) (T, error)
	Keys   func(c *T) Keys
	// Adjust, if set, changes a resolved configuration by the flags given.
	Adjust func(c *T, given func(flag string) bool)

	// DataMarker is a file that datasets have; IsData, if set, says which
	// folders that have it are datasets of this program.
	DataMarker string
	IsData     func(dir string) bool
	// Owned are files and folders of a run that --force removes, beside those
	// of every run.
	Owned []string

	// FreeBytes, if set, is asked for the machine's free memory (tests).
	FreeBytes func() uint64

	// Open opens the data that the plan's configuration names, or makes some
	// where it names none, and completes the configuration by it.
	Open func(ctx context.Context, s *cli.Streams, p *Plan[T]) (Task, error)
}

// free is the machine's free memory in bytes, 0 where nobody tells.
func (t *Training[T]) free() uint64 {
	if t.FreeBytes != nil {
		return t.FreeBytes()
	}
	return runlog.FreeBytes()
}

// warnOfMemory tells that a training needs more than is free just now. It is let
// go on: others may end, and estimates and what the system tells are rough.
func warnOfMemory(s *cli.Streams, task Task, act kernel.DType, free uint64) {
	if free == 0 {
		return
	}
	if need, lower := task.Memory(act, free); need > float64(free) {
		s.Warnf("training needs at least %s of memory and %s are free on this machine, so it may be stopped or very slow; %s",
			wording.Bytes(uint64(need)), wording.Bytes(free), lower)
	}
}

// Config is a configuration of a training.
type Config interface{ Validate() error }

// Keys are the keys that the configurations of all programs have.
type Keys struct {
	DataPath, Kernel, Precision *string
	Threads                     *int
}

// Task is data that was opened and the model that is trained on it. Its
// methods are called in this order.
type Task interface {
	// Loop returns what the step loop needs to know.
	Loop() (Loop, error)
	// Fits refuses what does not fit into so many bytes of memory (0:
	// unknown) with activations of this type.
	Fits(act kernel.DType, memory uint64) error
	// Memory is what training needs at least, in bytes, and which settings
	// bring it down to so many.
	Memory(act kernel.DType, free uint64) (need float64, lower string)
	// Build makes the model.
	Build(backend kernel.Backend, act kernel.DType) (Job, error)
	// Describe says what is trained on what.
	Describe(w io.Writer)
	// Next is the command that comes after the training of a run.
	Next(run string) []string
	// Close releases the data; the job is closed before.
	Close() error
}

// Job is a model under training.
type Job interface {
	train.Trainer
	Close()
}

// Loop is what a task tells the step loop.
type Loop struct {
	// Options that depend on configuration and data. Of Meta only what tells
	// about the data; Run adds the rest.
	train.Options
	Items []runlog.Item // metrics to show
	// FlopsPerToken are the operations of products and attention that a step
	// runs for each of its tokens: with them the share of the machine's ceiling
	// is shown. 0 leaves it out.
	FlopsPerToken float64
	// StepFlops are those of a whole step where all steps have as many: a step
	// that will take long is announced. Smaller names what makes it shorter.
	StepFlops float64
	Smaller   string
}

// Run trains until the schedule ends, --stop-after or a signal.
func (t *Training[T]) Run(ctx context.Context, s *cli.Streams, o *TrainOptions[T]) (err error) {
	var training atomic.Pointer[runlog.Progress] // set once there is something to save
	ctx, stop := train.OnInterrupt(OrBackground(ctx), func(sig os.Signal) {
		if p := training.Load(); p != nil {
			const what = "%v: finishing the step and saving; once more ends at once without saving"
			if s.Quiet() {
				s.Warnf(what, sig)
			}
			p.Notef(what, sig)
			return
		}
		s.Infof("%v: stopping before the training begins; once more ends at once", sig)
	})
	defer stop()
	p, err := t.Plan(o, time.Now())
	if err != nil {
		return err
	}
	events, err := openEvents(s, o.TensorBoard, p)
	if err != nil {
		return err
	}
	task, err := t.Open(ctx, s, p)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, task.Close()) }()
	keys := t.Keys(&p.Config)
	arithmetic := Compute{Kernel: *keys.Kernel, Precision: *keys.Precision, Threads: *keys.Threads}
	if o.Resume { // the run stored what auto came to
		const so = "as in the run so far"
		if !p.Chosen("kernel") {
			arithmetic.KernelFrom = so
		}
		if !p.Chosen("precision") {
			arithmetic.PrecisionFrom = so
		}
	}
	choice, err := arithmetic.Open(s, p.Chosen("kernel"))
	if err != nil {
		return err
	}
	defer choice.Backend.Close()
	// What auto came to is part of the run: the same again gives the same bytes.
	*keys.Kernel, *keys.Precision, *keys.Threads = choice.Backend.Name(), choice.Precision.String(), choice.Backend.Threads()
	if err := t.Describe(p, o); err != nil {
		return err
	}
	loop, err := t.loop(s, o, p, task)
	if err != nil {
		return err
	}
	if err := task.Fits(choice.Precision, runlog.PhysicalBytes()); err != nil {
		return err
	}
	warnOfMemory(s, task, choice.Precision, t.free())
	if ctx.Err() != nil {
		return fmt.Errorf("%w before the first step", cli.ErrInterrupted)
	}
	run, err := train.Open(train.Folder{Dir: p.Run, How: p.How, Owned: append([]string{ConfigFile, ProfileFile}, t.Owned...), Now: time.Now})
	if err != nil {
		return err
	}
	defer func() {
		run.Close()
		os.Remove(p.Run) // only succeeds on an empty folder, when nothing began
	}()
	prof := NewProfiler(o.Profile, choice)
	defer loop.Progress.End()
	loop.Progress.Doing("building the model")
	job, err := task.Build(prof.Backend(choice), choice.Precision)
	if err != nil {
		return err
	}
	defer job.Close()
	task.Describe(s.Lines())
	s.Infof("run %s: %s; this repeats it:\n  %s", p.Run, wording.Count(loop.Steps, "step"), p.Repeat)
	training.Store(loop.Progress)
	recorded := &profiled{Trainer: job, Profiler: prof}
	var trainer train.Trainer = recorded
	if !s.Quiet() {
		w := watch(recorded, choice)
		w.announce(s, loop.StepFlops, loop.Smaller)
		if loop.FlopsPerToken > 0 {
			loop.Progress.Speed = func(tokens float64) string { return w.share(tokens * loop.FlopsPerToken) }
			trainer = w
		}
	}
	if events != nil {
		defer events.Close()
		loop.Follower = events
		loop.Progress.Notef("event files in %s: tensorboard --logdir %s", events.Dir, o.TensorBoard)
	}
	err = run.Train(ctx, loop.Options, trainer)
	if err := errors.Join(err, recorded.finish(s, p.Run)); err != nil { // a profile of an interrupted training too
		return err
	}
	return summary(s, p.Run, cli.ShellLine(append([]string{t.Program}, task.Next(p.Run)...)...))
}

// loop completes what the task says by what the command line does.
func (t *Training[T]) loop(s *cli.Streams, o *TrainOptions[T], p *Plan[T], task Task) (Loop, error) {
	l, err := task.Loop()
	if err != nil {
		return l, err
	}
	raw, err := json.Marshal(p.Config)
	if err != nil {
		return l, fmt.Errorf("store the configuration: %w", err)
	}
	l.Meta.Kind, l.Meta.Program, l.Meta.Config = t.Kind, cli.Writer(t.Program), raw
	l.StopAfter, l.MaxTime = o.StopAfter, time.Duration(o.Minutes*float64(time.Minute))
	if l.Files == nil {
		l.Files = map[string][]byte{}
	}
	l.Files[ConfigFile] = p.YAML
	l.Continue, l.Progress, l.Now = p.Continue, NewProgress(s, l.Items...), time.Now
	return l, nil
}

// summary says what the run left, and what comes next.
func summary(s *cli.Streams, run, next string) error {
	store := checkpoint.Store{Dir: filepath.Join(run, checkpoint.Folder)}
	x, err := store.Index()
	if err != nil {
		return err
	}
	if x.Last != nil {
		fmt.Fprintf(s.Out, "last checkpoint  %s (step %d)\n", store.Path(*x.Last), x.Last.Step)
	}
	if x.Best != nil {
		fmt.Fprintf(s.Out, "best checkpoint  %s (step %d)\n", store.Path(x.Best.Ref), x.Best.Step)
	}
	fmt.Fprintf(s.Out, "next             %s\n", next)
	return nil
}
