package hrm

import (
	"time"

	"deeploop/internal/kernel"
	"deeploop/internal/profile"
	"deeploop/internal/rng"
)

// Bench times a configuration on random rows: every cell of them counts in the
// loss. Training steps and evaluation segments run one at a time, so that a
// caller can alternate them with those of other configurations or programs.
type Bench struct {
	Learner *Learner
	// Recorder counts what runs; see profile.Recorder.
	Recorder *profile.Recorder
	rows     Rows
}

// NewBench draws a model and builds its graphs. The architecture must have the
// dataset's sizes (SeqLen, VocabSize, NumPuzzleIdentifiers). now is the clock.
func NewBench(c TrainConfig, backend kernel.Backend, act kernel.DType, now func() time.Time) (*Bench, error) {
	m, err := NewModel(c.Arch, act, uint64(c.Seed))
	if err != nil {
		return nil, err
	}
	rec := profile.New(backend, now)
	const schedule = 1 << 20 // steps; any length will do
	l, err := NewLearner(m, rec, c, schedule)
	if err != nil {
		return nil, err
	}
	return &Bench{Learner: l, Recorder: rec, rows: benchRows(c)}, nil
}

// benchRows draws a batch.
func benchRows(c TrainConfig) Rows {
	rows := NewRows(c.GlobalBatchSize, c.Arch.SeqLen)
	draw := rng.NewStream(uint64(c.Seed), "bench")
	for i := range rows.Inputs {
		rows.Inputs[i], rows.Labels[i] = draw.Int32N(int32(c.Arch.VocabSize)), draw.Int32N(int32(c.Arch.VocabSize))
	}
	for i := range rows.IDs {
		rows.IDs[i] = draw.Int32N(int32(c.Arch.NumPuzzleIdentifiers))
	}
	return rows
}

// TrainStep makes one training step as Learner.Step does: forward, q target,
// backward, both optimizers.
func (b *Bench) TrainStep() (profile.Timing, error) {
	return b.Recorder.Time(func() error {
		_, err := b.Learner.Step(b.rows)
		return err
	})
}

// EvalSegment runs one segment as the Evaluator does, with the heads and the
// predictions that only its last one needs. Batch and states are those of the
// last training step.
func (b *Bench) EvalSegment() (profile.Timing, error) {
	return b.Recorder.Time(func() error { return b.Learner.Segment.Eval(true) })
}

// Close releases the graphs.
func (b *Bench) Close() { b.Learner.Segment.Close() }
