package main

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"time"

	"deeploop/hrm"
	"deeploop/internal/cli"
	"deeploop/internal/kernel/pick"
	"deeploop/internal/profile"
	"deeploop/internal/runlog"
)

// Timed are at least minTimed steps (or segments), after warmUps that are not:
// the first makes memory and packs weights.
const (
	minTimed = 3
	warmUps  = 2
)

// benchMeasure is one run of hrm bench.
type benchMeasure struct {
	o        benchOptions
	c        hrm.TrainConfig
	choice   pick.Choice
	progress *runlog.Progress
	now      func() time.Time
}

// run measures. It returns an error when nothing was timed; a ctx cancelled
// later ends it early.
func (m *benchMeasure) run(ctx context.Context) (*benchDoc, error) {
	defer m.progress.End()
	m.progress.Notef("model of %d trained parameters, batches of %d rows; warming up", m.c.Arch.NumParams(), m.c.GlobalBatchSize)
	b, err := hrm.NewBench(m.c, m.choice.Backend, m.choice.Precision, m.now)
	if err != nil {
		return nil, err
	}
	defer b.Close()
	probe := profile.NewProbe(m.choice.Backend, m.choice.Precision, m.now)
	steps, err := m.phase(ctx, "training steps", m.o.steps, m.o.seconds*2/3, b.TrainStep, b.Recorder, probe)
	if err != nil {
		return nil, err
	}
	if len(steps.seconds) == 0 {
		return nil, fmt.Errorf("%w before a training step was timed", cli.ErrInterrupted)
	}
	segments, err := m.phase(ctx, "evaluation segments", m.o.steps, m.o.seconds/3, b.EvalSegment, b.Recorder, probe)
	if err != nil {
		return nil, err
	}
	doc := m.document(steps, segments)
	doc.PeakRSS = runlog.PeakBytes() // before copies are probed, which takes memory
	doc.Interrupted = ctx.Err() != nil
	if m.o.profile {
		for range 5 {
			probe.Copy()
		}
	}
	step, segment := steps.record.Report("training step", probe), segments.record.Report("evaluation segment", probe)
	doc.CeilingGFLOPS, doc.HeapBytes = step.CeilingGFLOPS, step.HeapBytes
	if m.o.profile {
		doc.Profile = &step
		if segment.Units > 0 {
			doc.EvalProfile = &segment
		}
	}
	return doc, nil
}

// timings are those of one kind of work.
type timings struct {
	seconds, flops []float64 // of each, FLOP/s
	shares         []float64 // of the ceiling, probed before and after each
	record         profile.Record
}

// phase times one kind of work: at most n times, for about budget seconds.
func (m *benchMeasure) phase(ctx context.Context, what string, n int, budget float64, one func() (hrm.Timing, error), rec *profile.Recorder, probe *profile.Probe) (t timings, err error) {
	for range warmUps {
		if ctx.Err() != nil {
			return t, nil
		}
		if _, err := one(); err != nil {
			return t, fmt.Errorf("time %s: %w", what, err)
		}
	}
	rec.Take()
	count := m.progress.Counter(what)
	before, began := probe.Products(), m.now()
	for len(t.seconds) < n && ctx.Err() == nil {
		spent := m.now().Sub(began).Seconds()
		if spent >= budget && len(t.seconds) >= minTimed {
			break
		}
		x, err := one()
		if err != nil {
			return t, fmt.Errorf("time %s: %w", what, err)
		}
		after := probe.Products()
		t.seconds = append(t.seconds, x.Seconds)
		t.flops = append(t.flops, x.Flops/x.Seconds)
		if before+after > 0 {
			t.shares = append(t.shares, x.Flops/x.Seconds/((before+after)/2))
		}
		before = after
		count(len(t.seconds), min(n, max(minTimed, len(t.seconds)+int((budget-spent)/x.Seconds))))
	}
	t.record = rec.Take()
	return t, nil
}

// benchDoc is the document of hrm bench --json. Times are in seconds, shares
// from 0 to 1; null where nothing was measured.
type benchDoc struct {
	TrainStep   *spread `json:"train_step_s"`
	EvalSegment *spread `json:"eval_segment_s"`
	// Tokens are cells of grids; task slots do not count.
	TokensPerS     float64 `json:"tokens_per_s"`
	EvalTokensPerS float64 `json:"eval_tokens_per_s"`

	GFLOPS           float64  `json:"gflops"`
	CeilingGFLOPS    float64  `json:"ceiling_gflops"`
	CeilingShare     *float64 `json:"ceiling_share"`
	EvalGFLOPS       float64  `json:"eval_gflops"`
	EvalCeilingShare *float64 `json:"eval_ceiling_share"`
	TrainStepFlops   float64  `json:"train_step_flops"`
	EvalSegmentFlops float64  `json:"eval_segment_flops"`

	PeakRSS   uint64  `json:"peak_rss_bytes"`
	HeapBytes float64 `json:"heap_bytes_per_step"`

	Steps        int     `json:"steps"`         // asked for
	StepsSeconds float64 `json:"steps_take_s"`  // so long they would take, at the median
	StepsLeast   float64 `json:"steps_least_s"` // and at the minimum

	Kernel      string       `json:"kernel"`
	Precision   string       `json:"precision"`
	Threads     int          `json:"threads"`
	Config      benchConfig  `json:"config"`
	Machine     benchMachine `json:"machine"`
	Version     string       `json:"version"`
	Commit      string       `json:"commit"`
	Interrupted bool         `json:"interrupted"`

	Profile     *profile.Report `json:"profile,omitempty"`
	EvalProfile *profile.Report `json:"eval_profile,omitempty"`
}

// spread is what n repeats took.
type spread struct {
	Min    float64 `json:"min"`
	Median float64 `json:"median"`
	Max    float64 `json:"max"`
	N      int     `json:"n"`
}

// count is 0 of nothing.
func (s *spread) count() int {
	if s == nil {
		return 0
	}
	return s.N
}

func spreadOf(values []float64) *spread {
	if len(values) == 0 {
		return nil
	}
	return &spread{slices.Min(values), profile.Median(values), slices.Max(values), len(values)}
}

// benchConfig is what was timed.
type benchConfig struct {
	Preset     string `json:"preset"`
	Hidden     int    `json:"hidden_size"`
	Heads      int    `json:"num_heads"`
	HLayers    int    `json:"H_layers"`
	LLayers    int    `json:"L_layers"`
	HCycles    int    `json:"H_cycles"`
	LCycles    int    `json:"L_cycles"`
	SeqLen     int    `json:"seq_len"`
	TaskSlots  int    `json:"task_slots"` // positions in front of the grid
	Batch      int    `json:"batch_size"`
	Vocab      int    `json:"vocab_size"`
	Placement  string `json:"placement"`
	Parameters int    `json:"parameters"`
}

// benchMachine is where it was timed.
type benchMachine struct {
	Processor string `json:"processor"`
	Usable    int    `json:"processors"`
	OS        string `json:"os"`
	Arch      string `json:"arch"`
	Memory    uint64 `json:"memory_bytes"`
	Go        string `json:"go"`
}

func (m *benchMeasure) document(steps, segments timings) *benchDoc {
	a := m.c.Arch
	d := &benchDoc{
		TrainStep: spreadOf(steps.seconds), EvalSegment: spreadOf(segments.seconds),
		GFLOPS: profile.Median(steps.flops) / 1e9, EvalGFLOPS: profile.Median(segments.flops) / 1e9,
		TrainStepFlops: a.TrainStepFlops(m.c.GlobalBatchSize), EvalSegmentFlops: a.EvalSegmentFlops(m.c.GlobalBatchSize),
		Steps: m.o.steps, Kernel: m.choice.Backend.Name(), Precision: m.choice.Precision.String(), Threads: m.choice.Backend.Threads(),
		Config: benchConfig{
			Preset: m.o.preset, Hidden: a.HiddenSize, Heads: a.NumHeads, HLayers: a.HLayers, LLayers: a.LLayers, HCycles: a.HCycles, LCycles: a.LCycles,
			SeqLen: a.SeqLen, TaskSlots: a.PuzzleEmbLen(), Batch: m.c.GlobalBatchSize, Vocab: a.VocabSize, Placement: a.Placement, Parameters: a.NumParams(),
		},
		Machine: benchMachine{
			Processor: profile.Processor(), Usable: runtime.GOMAXPROCS(0), OS: runtime.GOOS, Arch: runtime.GOARCH,
			Memory: runlog.PhysicalBytes(), Go: runtime.Version(),
		},
		Version: cli.Number, Commit: cli.Commit(),
	}
	tokens := float64(m.c.GlobalBatchSize * a.SeqLen)
	d.TokensPerS = tokens / d.TrainStep.Median
	d.StepsSeconds, d.StepsLeast = float64(d.Steps)*d.TrainStep.Median, float64(d.Steps)*d.TrainStep.Min
	if d.EvalSegment != nil {
		d.EvalTokensPerS = tokens / d.EvalSegment.Median
	}
	share := func(t timings) *float64 {
		if len(t.shares) == 0 {
			return nil
		}
		s := profile.Median(t.shares)
		return &s
	}
	d.CeilingShare, d.EvalCeilingShare = share(steps), share(segments)
	return d
}
