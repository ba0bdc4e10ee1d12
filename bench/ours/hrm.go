package ours

import (
	"math/rand/v2"

	"deeploop/bench"
	"deeploop/hrm"
	"deeploop/internal/kernel"
)

// HRMConfig is HRM's published run at another size.
func HRMConfig(c bench.Config) hrm.TrainConfig {
	t := hrm.PresetHRMv1()
	a := &t.Arch
	a.HiddenSize, a.PuzzleEmbDim, a.NumHeads = c.HiddenSize, c.HiddenSize, c.NumHeads
	a.HLayers, a.LLayers, a.HCycles, a.LCycles = c.HLayers, c.LLayers, c.HCycles, c.LCycles
	a.SeqLen, a.VocabSize, a.NumPuzzleIdentifiers = c.SeqLen, 12, 1000
	t.GlobalBatchSize = c.BatchSize
	return t
}

type hrmJob struct {
	learner *hrm.Learner
	rows    hrm.Rows
}

// openHRM makes a learner and a batch of random grids in which every tenth
// label is not counted, as the peer's.
func openHRM(size bench.Config, backend kernel.Backend, act kernel.DType) (job, error) {
	c := HRMConfig(size)
	m, err := hrm.NewModel(c.Arch, act, 1)
	if err != nil {
		return nil, err
	}
	l, err := hrm.NewLearner(m, backend, c, 100000)
	if err != nil {
		return nil, err
	}
	return &hrmJob{l, randomRows(c)}, nil
}

func randomRows(c hrm.TrainConfig) hrm.Rows {
	draw := rand.New(rand.NewPCG(1, 1))
	rows := hrm.NewRows(c.GlobalBatchSize, c.Arch.SeqLen)
	for i := range rows.Inputs {
		rows.Inputs[i], rows.Labels[i] = draw.Int32N(12), draw.Int32N(12)
		if i%10 == 0 {
			rows.Labels[i] = -100
		}
	}
	for i := range rows.IDs {
		rows.IDs[i] = draw.Int32N(int32(c.Arch.NumPuzzleIdentifiers))
	}
	return rows
}

func (j *hrmJob) Step() (float64, error) {
	m, err := j.learner.Step(j.rows)
	return m.Loss(), err
}

func (j *hrmJob) Close() { j.learner.Segment.Close() }
