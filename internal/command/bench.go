package command

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"time"

	"deeploop/internal/check"
	"deeploop/internal/cli"
	"deeploop/internal/kernel"
	"deeploop/internal/kernel/pick"
	"deeploop/internal/profile"
	"deeploop/internal/runlog"
	"deeploop/internal/train"
)

// Timed are at least minTimed steps (or evaluations), after warmUps that are
// not: the first makes memory and packs weights.
const (
	minTimed = 3
	warmUps  = 2
)

// Bench is one measurement of a configuration: training steps, then parts of
// evaluations.
type Bench struct {
	Options BenchOptions
	// Says is what is measured, for the progress line.
	Says string
	// Evaluation is one part of it, such as "evaluation batch".
	Evaluation string
	// Tokens of a training step, and of a part of an evaluation.
	Tokens float64
	// Fits refuses a configuration that does not fit into so many bytes of
	// memory; Advice is which flags help.
	Fits   func(act kernel.DType, memory uint64) error
	Advice string
	// Open builds the model.
	Open func(backend kernel.Backend, act kernel.DType) (Benched, error)
	// Document is what is printed of the figures: a document for --json, and
	// the configuration's lines for people.
	Document func(f *Figures) (doc any, configuration string)

	choice pick.Choice
}

// Benched is a model that makes one step, or one part of an evaluation, at a
// time.
type Benched struct {
	TrainStep, Evaluate func() (profile.Timing, error)
	Recorder            *profile.Recorder
	Close               func()
}

// Run measures until done or interrupted, and prints what it found out.
func (m *Bench) Run(ctx context.Context, s *cli.Streams) error {
	choice, err := m.Options.Compute.Open(s, m.Options.Given("kernel"))
	if err != nil {
		return err
	}
	defer choice.Backend.Close()
	err = m.Fits(choice.Precision, runlog.PhysicalBytes()) // before anything is allocated
	if err := check.Advise(err, m.Advice); err != nil {
		return err
	}
	m.choice = choice
	f, err := m.measure(ctx, s)
	if err != nil {
		return err
	}
	doc, configuration := m.Document(f)
	return m.print(s.Out, f, doc, configuration)
}

// measure returns an error when nothing was timed.
func (m *Bench) measure(ctx context.Context, s *cli.Streams) (*Figures, error) {
	ctx, stop := train.OnInterrupt(OrBackground(ctx), func(sig os.Signal) {
		s.Infof("%v: ending with what was measured; once more ends at once", sig)
	})
	defer stop()
	o, progress := m.Options, NewProgress(s)
	defer progress.End()
	progress.Notef("%s; warming up", m.Says)
	progress.Doing("building the model and warming up")
	b, err := m.Open(m.choice.Backend, m.choice.Precision)
	if err != nil {
		return nil, err
	}
	defer b.Close()
	probe := profile.NewProbe(m.choice.Backend, m.choice.Precision, time.Now)
	phase := phases{steps: o.Steps, progress: progress, now: time.Now, rec: b.Recorder, probe: probe}
	steps, err := phase.time(ctx, "training steps", o.Seconds*2/3, b.TrainStep)
	if err != nil {
		return nil, err
	}
	if len(steps.seconds) == 0 {
		return nil, fmt.Errorf("%w before a training step was timed", cli.ErrInterrupted)
	}
	parts, err := phase.time(ctx, m.Evaluation+"s", o.Seconds/3, b.Evaluate)
	if err != nil {
		return nil, err
	}
	f := m.figures(steps, parts)
	f.PeakRSS = runlog.PeakBytes() // before copies are probed, which takes memory
	f.Interrupted = ctx.Err() != nil
	if o.Profile {
		for range 5 {
			probe.Copy()
		}
	}
	step, part := steps.record.Report("training step", probe), parts.record.Report(m.Evaluation, probe)
	f.CeilingGFLOPS, f.HeapBytes = step.CeilingGFLOPS, step.HeapBytes
	if o.Profile {
		f.Profile = &step
		if part.Units > 0 {
			f.EvalProfile = &part
		}
	}
	return f, nil
}

// timings are those of one kind of work.
type timings struct {
	seconds, flops []float64 // of each, FLOP/s
	shares         []float64 // of the ceiling, probed before and after each
	record         profile.Record
}

// phases times kinds of work one after the other.
type phases struct {
	steps    int // no more are timed
	progress *runlog.Progress
	now      func() time.Time
	rec      *profile.Recorder
	probe    *profile.Probe
}

// time times one kind of work for about budget seconds.
func (p *phases) time(ctx context.Context, what string, budget float64, one func() (profile.Timing, error)) (t timings, err error) {
	p.progress.Doing("warming up (" + what + ")")
	for range warmUps {
		if ctx.Err() != nil {
			return t, nil
		}
		if _, err := one(); err != nil {
			return t, fmt.Errorf("time %s: %w", what, err)
		}
	}
	p.rec.Take()
	count := p.progress.Counter(what)
	before, began := p.probe.Products(), p.now()
	for len(t.seconds) < p.steps && ctx.Err() == nil {
		spent := p.now().Sub(began).Seconds()
		if spent >= budget && len(t.seconds) >= minTimed {
			break
		}
		timing, err := one()
		if err != nil {
			return t, fmt.Errorf("time %s: %w", what, err)
		}
		after := p.probe.Products()
		seconds, rate := timing.Seconds, timing.Flops/timing.Seconds
		t.seconds = append(t.seconds, seconds)
		t.flops = append(t.flops, rate)
		if before+after > 0 {
			t.shares = append(t.shares, rate/((before+after)/2))
		}
		before = after
		count(len(t.seconds), min(p.steps, max(minTimed, len(t.seconds)+int((budget-spent)/seconds))))
	}
	t.record = p.rec.Take()
	return t, nil
}

// Figures are what a benchmark found out. Times are in seconds, shares from 0
// to 1; null where nothing was measured.
type Figures struct {
	TrainStep *profile.Spread `json:"train_step_s"`
	// Eval is a part of an evaluation; the program gives it its name.
	Eval           *profile.Spread `json:"-"`
	TokensPerS     float64         `json:"tokens_per_s"`
	EvalTokensPerS float64         `json:"eval_tokens_per_s"`

	GFLOPS           float64  `json:"gflops"`
	CeilingGFLOPS    float64  `json:"ceiling_gflops"`
	CeilingShare     *float64 `json:"ceiling_share"`
	EvalGFLOPS       float64  `json:"eval_gflops"`
	EvalCeilingShare *float64 `json:"eval_ceiling_share"`

	PeakRSS   uint64  `json:"peak_rss_bytes"`
	HeapBytes float64 `json:"heap_bytes_per_step"`

	Steps        int     `json:"steps"`         // asked for
	StepsSeconds float64 `json:"steps_take_s"`  // so long they would take, at the median
	StepsLeast   float64 `json:"steps_least_s"` // and at the minimum

	Kernel      string  `json:"kernel"`
	Precision   string  `json:"precision"`
	Threads     int     `json:"threads"`
	Machine     Machine `json:"machine"`
	Version     string  `json:"version"`
	Commit      string  `json:"commit"`
	Interrupted bool    `json:"interrupted"`

	Profile     *profile.Report `json:"profile,omitempty"`
	EvalProfile *profile.Report `json:"eval_profile,omitempty"`
}

// Machine is where it was timed.
type Machine struct {
	Processor string `json:"processor"`
	Usable    int    `json:"processors"`
	OS        string `json:"os"`
	Arch      string `json:"arch"`
	Memory    uint64 `json:"memory_bytes"`
	Go        string `json:"go"`
}

// spread is null of nothing.
func spread(values []float64) *profile.Spread {
	if len(values) == 0 {
		return nil
	}
	s := profile.SpreadOf(values)
	return &s
}

func (m *Bench) figures(steps, parts timings) *Figures {
	f := &Figures{
		TrainStep: spread(steps.seconds), Eval: spread(parts.seconds),
		GFLOPS: profile.Median(steps.flops) / 1e9, EvalGFLOPS: profile.Median(parts.flops) / 1e9,
		Steps: m.Options.Steps, Kernel: m.choice.Backend.Name(), Precision: m.choice.Precision.String(), Threads: m.choice.Backend.Threads(),
		Machine: Machine{
			Processor: profile.Processor(), Usable: runtime.GOMAXPROCS(0), OS: runtime.GOOS, Arch: runtime.GOARCH,
			Memory: runlog.PhysicalBytes(), Go: runtime.Version(),
		},
		Version: cli.Number, Commit: cli.Commit(),
	}
	f.TokensPerS = m.Tokens / f.TrainStep.Median
	f.StepsSeconds, f.StepsLeast = float64(f.Steps)*f.TrainStep.Median, float64(f.Steps)*f.TrainStep.Min
	if f.Eval != nil {
		f.EvalTokensPerS = m.Tokens / f.Eval.Median
	}
	share := func(t timings) *float64 {
		if len(t.shares) == 0 {
			return nil
		}
		s := profile.Median(t.shares)
		return &s
	}
	f.CeilingShare, f.EvalCeilingShare = share(steps), share(parts)
	return f
}
