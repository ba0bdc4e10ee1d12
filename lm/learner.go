package lm

import (
	"errors"
	"math"

	"deeploop/internal/kernel"
	"deeploop/internal/optim"
)

// Learner is a model with its training state. One Step is one optimizer step
// over grad_accum batches.
type Learner struct {
	Model  *Model
	Params []optim.Param
	Adam   optim.AdamW
	EMA    *optim.EMA // nil without
	LR     optim.Cosine
	// StepsDone counts optimizer steps.
	StepsDone int

	backend  kernel.Backend
	batch    batch
	gradient gradient
	batches  int // per step
	clip     float64
}

// NewLearner builds the graphs and fresh optimizer state.
func NewLearner(m *Model, backend kernel.Backend, c TrainConfig) (*Learner, error) {
	l := &Learner{
		Model: m, backend: backend, batches: c.GradAccum, clip: c.GradClip,
		batch: newBatch(c.BatchSize, c.Arch.Context, 1/float64(c.GradAccum)),
		Adam:  optim.AdamW{Beta1: c.Beta1, Beta2: c.Beta2, Eps: c.Eps, WeightDecay: c.WeightDecay},
		LR:    optim.Cosine{Base: c.LR, Warmup: c.LRWarmupSteps, Total: c.Steps, MinRatio: c.LRMinRatio},
	}
	var err error
	if c.CheckpointLoops {
		l.gradient, err = newRecompute(m, backend, l.batch)
	} else {
		l.gradient, err = newFlat(m, backend, l.batch, c.freshGradients())
	}
	if err != nil {
		return nil, err
	}
	for _, p := range m.Params() {
		o := optim.NewParam(p.Name, p.Data, p.Grad(), p.Changed)
		o.NoDecay = p.Rows == 1 // gains
		l.Params = append(l.Params, o)
	}
	if c.EMA {
		l.EMA = optim.NewEMA(backend, l.Params, c.EMARate)
		l.Adam.Average = l.EMA // AdamW takes it along
	}
	return l, nil
}

// freshGradients says that a step is one run of one graph, which has its own
// gradients (graph.Builder.FreshGradients).
func (c TrainConfig) freshGradients() bool { return c.GradAccum == 1 && !c.CheckpointLoops }

// StepMetrics is what one step measured.
type StepMetrics struct {
	Loss     float64 // nats per token, mean over the step
	GradNorm float64 // global L2 norm before clipping
}

// Step makes one optimizer step. next fills inputs and labels [B*T] of the
// next batch. Nothing is updated when a number is not finite; the error then
// is *optim.NonFinite.
func (l *Learner) Step(next func(inputs, labels []int32) error) (StepMetrics, error) {
	m, err := l.gradients(next)
	if err != nil {
		return m, err
	}
	l.StepsDone++
	l.Adam.Step(l.backend, l.Params, l.LR.At(l.StepsDone), optim.Clip(m.GradNorm, l.clip))
	return m, nil
}

// gradients runs the batches of a step and checks what they gave.
func (l *Learner) gradients(next func(inputs, labels []int32) error) (StepMetrics, error) {
	for _, p := range l.Model.Params() {
		p.ZeroGrad()
	}
	var m StepMetrics
	for range l.batches {
		if err := next(l.batch.tokens, l.batch.loss.Labels); err != nil {
			return m, err
		}
		if err := l.gradient.run(); err != nil {
			return m, err
		}
		m.Loss += l.batch.loss.Sum / float64(l.batches)
	}
	var err error
	m.GradNorm, err = optim.GradNorm(l.backend, l.Params)
	if math.IsNaN(m.Loss) || math.IsInf(m.Loss, 0) {
		err = errors.Join(&optim.NonFinite{What: "loss", Index: -1, Value: m.Loss}, optim.FiniteWeights(l.backend, l.Params), err)
	}
	return m, err
}

// Close releases the graphs.
func (l *Learner) Close() { l.gradient.Close() }
