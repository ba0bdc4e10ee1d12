package hrm

import (
	"context"

	"deeploop/augment"
	"deeploop/internal/checkpoint"
	"deeploop/internal/kernel"
	"deeploop/internal/optim"
	"deeploop/internal/runlog"
	"deeploop/internal/train"
)

// Job trains a model on a dataset: a Learner fed by a loader, as the step
// loop of internal/train sees it.
type Job struct {
	*Learner
	data    *augment.Dataset
	loader  *TrainLoader
	offered Rows
	eval    *Segment // built at the first evaluation
	augs    int
}

var _ train.Trainer = (*Job)(nil)

// SizeFor fills in what the architecture takes from a dataset.
func (c *Config) SizeFor(d *augment.Dataset) {
	c.SeqLen, c.VocabSize, c.NumPuzzleIdentifiers = d.Train.SeqLen, d.Train.VocabSize, d.NumIdentifiers()
}

// NewJob draws a fresh model for the dataset. act is the activation type.
func NewJob(c TrainConfig, d *augment.Dataset, backend kernel.Backend, act kernel.DType) (*Job, error) {
	c.Arch.SizeFor(d)
	m, err := NewModel(c.Arch, act, uint64(c.Seed))
	if err != nil {
		return nil, err
	}
	steps := c.TotalSteps(d.Train.TotalGroups, d.Train.MeanPuzzleExamples)
	l, err := NewLearner(m, backend, c, steps)
	if err != nil {
		return nil, err
	}
	loader, err := NewTrainLoader(d.Train, LoaderConfig{
		Seed: uint64(c.Seed), LegacySeed: uint32(c.Seed), BatchSize: c.GlobalBatchSize, EpochsPerPass: c.EpochsPerPass(),
	})
	if err != nil {
		return nil, err
	}
	return &Job{
		Learner: l, data: d, loader: loader, augs: c.EvalAugmentations,
		offered: NewRows(c.GlobalBatchSize, m.Config.SeqLen),
	}, nil
}

// Step makes one optimizer step on the next batch.
func (j *Job) Step(_ context.Context, _ int) (train.Result, error) {
	if _, err := j.loader.Next(j.offered); err != nil {
		return train.Result{}, err
	}
	m, err := j.Learner.Step(j.offered)
	if err != nil {
		return train.Result{}, err
	}
	metrics := m.perRow(len(j.offered.IDs))
	metrics["lr"] = j.LR.At(j.StepsDone)
	return train.Result{
		Loss: m.Loss() / float64(len(j.offered.IDs)), Metrics: metrics,
		Tokens: len(j.offered.IDs) * j.Model.Config.SeqLen,
	}, nil
}

// perRow divides sums as the reference logs them: losses by the rows of the
// batch, the others by the rows that halted (absent when none did).
func (m StepMetrics) perRow(rows int) runlog.Metrics {
	n, r := float64(m.Count), float64(max(rows, 1))
	out := runlog.Metrics{
		"loss": m.Loss() / r, "lm_loss": m.LMLoss / r, "q_halt_loss": m.QHaltLoss / r, "q_continue_loss": m.QContinueLoss / r,
		"count": n,
	}
	if m.Count > 0 {
		out["accuracy"], out["exact_accuracy"] = m.Accuracy/n, m.ExactAccuracy/n
		out["q_halt_accuracy"], out["steps"] = m.QHaltAccuracy/n, float64(m.Steps)/n
	}
	return out
}

// Evaluate runs the test split's originals and the configured number of
// augmented copies, with the averaged weights where they are kept.
func (j *Job) Evaluate(ctx context.Context, progress func(done, total int)) (runlog.Metrics, error) {
	if j.eval == nil {
		s, err := NewSegment(j.Model, j.backend, j.Segment.Batch)
		if err != nil {
			return nil, err
		}
		j.eval = s
	}
	if j.EMA != nil {
		j.EMA.Swap(j.Params)
		defer j.EMA.Swap(j.Params)
	}
	m, err := Measure(ctx, j.eval, j.data, j.augs, progress)
	if exact, ok := m["exact_accuracy"]; ok {
		m[SelectionMetric] = exact + m["accuracy"]/1000
	}
	return m, err
}

// SelectionMetric of an evaluation during training picks the best checkpoint:
// exact accuracy, and among equals (often 0) the accuracy of cells, which
// counts a thousandth.
const SelectionMetric = "selection"

// Check finds weights, moments, averages and task embeddings that are not
// finite.
func (j *Job) Check() error {
	if err := optim.FiniteState(j.backend, j.Params, j.EMA); err != nil {
		return err
	}
	return optim.Finite(j.backend, "weight", puzzleTable, j.Model.PuzzleTable)
}

// State lists everything the next steps depend on.
func (j *Job) State(s *checkpoint.Set) {
	m := j.Model
	m.State(s)
	weights := m.Params()
	train.AdamState(s, j.Params, func(i int) []int { return weights[i].Shape() }, j.EMA)
	s.Value(checkpoint.Optimizer, "adam_steps", &j.Adam.Steps)
	s.Value(checkpoint.Optimizer, "steps", &j.StepsDone)
	b, t, d := j.Segment.Batch, m.Config.SeqLen, m.Config.HiddenSize
	s.Tensor(checkpoint.Carry, "z_H", []int{b, m.Config.Positions(), d}, j.Segment.ZH)
	s.Tensor(checkpoint.Carry, "z_L", []int{b, m.Config.Positions(), d}, j.Segment.ZL)
	s.Tensor(checkpoint.Carry, "inputs", []int{b, t}, j.Carry.Current.Inputs)
	s.Tensor(checkpoint.Carry, "labels", []int{b, t}, j.Carry.Current.Labels)
	s.Tensor(checkpoint.Carry, "puzzle_identifiers", []int{b}, j.Carry.Current.IDs)
	s.Tensor(checkpoint.Carry, "steps", []int{b}, j.Carry.Steps)
	s.Tensor(checkpoint.Carry, "halted", []int{b}, j.Carry.Halted)
	s.Value(checkpoint.Carry, "loader", j.loader)
	s.Value(checkpoint.Streams, "exploration", j.explore)
}

// State lists what evaluation needs: weights, initial states, task embeddings.
func (m *Model) State(s *checkpoint.Set) {
	m.weights(s)
	if c := m.Config; c.PuzzleEmbDim > 0 {
		s.Tensor(checkpoint.TaskEmbeddings, puzzleTable, []int{c.NumPuzzleIdentifiers, c.PuzzleEmbDim}, m.PuzzleTable)
	}
}

// puzzleTable is the name of the task embeddings, the reference's.
const puzzleTable = "puzzle_emb.weights"

// weights lists weights and initial states.
func (m *Model) weights(s *checkpoint.Set) {
	for _, p := range m.Params() {
		s.Tensor(checkpoint.Weights, p.Name, p.Shape(), p.Data)
	}
	d := m.Config.HiddenSize
	s.Tensor(checkpoint.Weights, "H_init", []int{d}, m.HInit)
	s.Tensor(checkpoint.Weights, "L_init", []int{d}, m.LInit)
}

// Restored brings along what is derived from a State that was overwritten.
func (j *Job) Restored(fresh ...string) error {
	train.AdamRestored(j.backend, j.Params, j.EMA, fresh)
	return nil
}

// Close releases graphs.
func (j *Job) Close() {
	j.Segment.Close()
	if j.eval != nil {
		j.eval.Close()
	}
}
