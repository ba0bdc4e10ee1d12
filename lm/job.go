package lm

import (
	"context"
	"fmt"

	"deeploop/internal/checkpoint"
	"deeploop/internal/kernel"
	"deeploop/internal/optim"
	"deeploop/internal/runlog"
	"deeploop/internal/train"
)

// Data is what a training reads.
type Data struct {
	Train, Val Tokens
	// Length gives the bytes of a token; nil where unknown.
	Length func(id int32) int
}

// Job trains a model on a dataset: a Learner fed by a Loader, as the step loop
// of internal/train sees it.
type Job struct {
	*Learner
	config TrainConfig
	data   Data
	loader *Loader
	loops  []int    // to evaluate
	eval   *Forward // built at the first evaluation
	kappa  *Kappa   // built at the first measurement
}

var _ train.Trainer = (*Job)(nil)

// NewJob draws a fresh model for the dataset. act is the activation type. The
// architecture must have its VocabSize.
func NewJob(c TrainConfig, d Data, backend kernel.Backend, act kernel.DType) (*Job, error) {
	loops, err := c.LoopCounts()
	if err != nil {
		return nil, err
	}
	m, err := NewModel(c.Arch, act, uint64(c.Seed))
	if err != nil {
		return nil, err
	}
	loader, err := NewLoader(d.Train, c.Arch.Context, uint64(c.Seed))
	if err != nil {
		return nil, err
	}
	l, err := NewLearner(m, backend, c)
	if err != nil {
		return nil, err
	}
	return &Job{Learner: l, config: c, data: d, loader: loader, loops: loops}, nil
}

// Step makes one optimizer step on the next batches.
func (j *Job) Step(ctx context.Context, step int) (train.Result, error) {
	var kappa runlog.Metrics
	if every := j.config.KappaSteps; every > 0 && (step-1)%every == 0 {
		var err error
		if kappa, err = j.measureKappa(ctx); err != nil {
			return train.Result{}, err
		}
	}
	m, err := j.Learner.Step(j.loader.Next)
	if err != nil {
		return train.Result{}, err
	}
	metrics := runlog.Metrics{"loss": m.Loss, "grad_norm": m.GradNorm, "lr": j.LR.At(j.StepsDone)}
	for k, v := range kappa {
		metrics[k] = v
	}
	return train.Result{Loss: m.Loss, Metrics: metrics, Tokens: j.config.TokensPerStep()}, nil
}

// measureKappa measures at the present weights, on the first sequences of the
// validation split. A step's line in the metrics has what was measured before
// it, the last evaluation's what the end of the schedule gave.
func (j *Job) measureKappa(ctx context.Context) (runlog.Metrics, error) {
	if j.kappa == nil {
		k, err := NewKappa(j.Model, j.backend, j.config.BatchSize, j.config.Arch.Context, j.config.KappaGroup)
		if err != nil {
			return nil, err
		}
		j.kappa = k
	}
	if err := j.kappa.Load(j.data.Val, 0); err != nil {
		return nil, err
	}
	r, err := j.kappa.Measure(ctx, nil)
	if err != nil {
		return nil, err
	}
	m := runlog.Metrics{"kappa_G_max": r.Max(), "kappa_G_median": r.Median()}
	if len(r[0].Norms) > 1 {
		m["kappa_cosine_mean"] = r.MeanCosine()
	}
	return m, nil
}

// Evaluate measures the validation split at every loop count asked for, with
// the averaged weights where they are kept. The metrics of training's own
// count are loss, bits_per_byte and accuracy; the others' end in _rN. At the end
// of a schedule with kappa_steps it measures kappa too, of the raw weights.
func (j *Job) Evaluate(ctx context.Context, progress func(done, total int)) (runlog.Metrics, error) {
	if j.eval == nil {
		f, err := NewValidation(j.Model, j.backend, j.config.BatchSize)
		if err != nil {
			return nil, err
		}
		j.eval = f
	}
	m := runlog.Metrics{}
	if j.config.KappaSteps > 0 && j.StepsDone == j.config.Steps {
		var err error
		if m, err = j.measureKappa(ctx); err != nil {
			return nil, err
		}
	}
	if j.EMA != nil {
		j.EMA.Swap(j.Params)
		defer j.EMA.Swap(j.Params)
	}
	vs, err := Validate(ctx, j.eval, j.data.Val, int64(j.config.EvalTokens), j.loops, j.data.Length, progress)
	if err != nil {
		return nil, err
	}
	for i, v := range vs {
		suffix := ""
		if i > 0 {
			suffix = fmt.Sprintf("_r%d", v.Loops)
		}
		m["loss"+suffix], m["accuracy"+suffix] = v.Loss, v.Accuracy
		if v.Bytes > 0 {
			m["bits_per_byte"+suffix] = v.BitsPerByte
		}
	}
	return m, nil
}

// SelectionMetric of an evaluation picks the best checkpoint: the lowest.
const SelectionMetric = "loss"

// Check finds weights, moments and averages that are not finite.
func (j *Job) Check() error {
	return optim.FiniteState(j.backend, j.Params, j.EMA)
}

// State lists everything the next steps depend on.
func (j *Job) State(s *checkpoint.Set) {
	j.Model.State(s)
	weights := j.Model.Params()
	train.AdamState(s, j.Params, func(i int) []int { return weights[i].Shape() }, j.EMA)
	s.Value(checkpoint.Optimizer, "adam_steps", &j.Adam.Steps)
	s.Value(checkpoint.Optimizer, "steps", &j.StepsDone)
	s.Value(checkpoint.Carry, "loader", &j.loader.Place)
}

// State lists what evaluation needs, the weights.
func (m *Model) State(s *checkpoint.Set) {
	for _, p := range m.Params() {
		s.Tensor(checkpoint.Weights, p.Name, p.Shape(), p.Data)
	}
}

// Restored brings along what is derived from a State that was overwritten.
func (j *Job) Restored(fresh ...string) error {
	train.AdamRestored(j.backend, j.Params, j.EMA, fresh)
	return nil
}

// Close releases graphs.
func (j *Job) Close() {
	j.Learner.Close()
	if j.eval != nil {
		j.eval.Close()
	}
	if j.kappa != nil {
		j.kappa.Close()
	}
}
