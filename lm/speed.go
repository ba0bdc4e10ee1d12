package lm

import (
	"time"

	"deeploop/internal/kernel"
	"deeploop/internal/profile"
	"deeploop/internal/rng"
)

// Bench times a configuration on random tokens. Training steps and evaluation
// batches run one at a time, so that a caller can alternate them with those of
// other programs.
type Bench struct {
	Learner *Learner
	// Recorder counts what runs; see profile.Recorder.
	Recorder *profile.Recorder
	forward  *Forward
	draw     *rng.Stream
}

// NewBench draws a model and builds its graphs. The architecture must have its
// VocabSize. now is the clock.
func NewBench(c TrainConfig, backend kernel.Backend, act kernel.DType, now func() time.Time) (*Bench, error) {
	m, err := NewModel(c.Arch, act, uint64(c.Seed))
	if err != nil {
		return nil, err
	}
	rec := profile.New(backend, now)
	l, err := NewLearner(m, rec, c)
	if err != nil {
		return nil, err
	}
	f, err := NewValidation(m, rec, c.BatchSize)
	if err != nil {
		l.Close()
		return nil, err
	}
	return &Bench{Learner: l, Recorder: rec, forward: f, draw: rng.NewStream(uint64(c.Seed), "bench")}, nil
}

func (b *Bench) next(inputs, labels []int32) error {
	v := int32(b.Learner.Model.Config.VocabSize)
	for i := range inputs {
		inputs[i], labels[i] = b.draw.Int32N(v), b.draw.Int32N(v)
	}
	return nil
}

// TrainStep makes one training step as Learner.Step does: forward, backward,
// clipping and AdamW.
func (b *Bench) TrainStep() (profile.Timing, error) {
	return b.Recorder.Time(func() error {
		_, err := b.Learner.Step(b.next)
		return err
	})
}

// EvalBatch runs one batch as Validate does, at the loop count of training.
func (b *Bench) EvalBatch() (profile.Timing, error) {
	if err := b.next(b.forward.Tokens, b.forward.Loss.Labels); err != nil {
		return profile.Timing{}, err
	}
	return b.Recorder.Time(func() error { return b.forward.Run(b.Learner.Model.Config.Loops) })
}

// Close releases the graphs.
func (b *Bench) Close() {
	b.Learner.Close()
	b.forward.Close()
}
