package ours

import (
	"math/rand/v2"

	"deeploop/bench"
	"deeploop/internal/kernel"
	"deeploop/lm"
)

// LMConfig is the paper's recipe at another size; a step is one batch.
func LMConfig(c bench.Config) lm.TrainConfig {
	t := lm.PresetGPT2Small()
	a := &t.Arch
	a.Layers, a.Loops, a.HiddenSize, a.NumHeads = c.Layers, c.Loops, c.HiddenSize, c.NumHeads
	a.Context, a.VocabMultiple, a.VocabSize = c.SeqLen, 1, c.VocabSize
	t.BatchSize, t.GradAccum = c.BatchSize, 1
	return t
}

type lmJob struct {
	learner        *lm.Learner
	inputs, labels []int32
}

// openLM makes a learner and a batch of random tokens.
func openLM(size bench.Config, backend kernel.Backend, act kernel.DType) (job, error) {
	c := LMConfig(size)
	m, err := lm.NewModel(c.Arch, act, 1)
	if err != nil {
		return nil, err
	}
	l, err := lm.NewLearner(m, backend, c)
	if err != nil {
		return nil, err
	}
	draw := rand.New(rand.NewPCG(1, 1))
	random := func() []int32 {
		ids := make([]int32, size.BatchSize*size.SeqLen)
		for i := range ids {
			ids[i] = draw.Int32N(int32(size.VocabSize))
		}
		return ids
	}
	return &lmJob{l, random(), random()}, nil
}

func (j *lmJob) Step() (float64, error) {
	m, err := j.learner.Step(func(inputs, labels []int32) error {
		copy(inputs, j.inputs)
		copy(labels, j.labels)
		return nil
	})
	return m.Loss, err
}

func (j *lmJob) Close() { j.learner.Close() }
