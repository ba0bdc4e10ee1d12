package hrm

import (
	"testing"

	"github.com/stretchr/testify/require"

	"deeploop/internal/kernel"
)

// benchConfigs are model sizes whose steps are timed: A and B are small grids
// (10x10), C is the published model on full ARC canvases.
func benchConfigs() map[string]TrainConfig {
	set := func(hidden, heads, layers, seq, batch int) TrainConfig {
		c := PresetHRMv1()
		c.Arch.HiddenSize, c.Arch.PuzzleEmbDim, c.Arch.NumHeads = hidden, hidden, heads
		c.Arch.HLayers, c.Arch.LLayers = layers, layers
		c.Arch.SeqLen, c.Arch.VocabSize, c.Arch.NumPuzzleIdentifiers = seq, 12, 1000
		c.GlobalBatchSize = batch
		return c
	}
	return map[string]TrainConfig{
		"A_128x4_2+2_T100_B64": set(128, 4, 2, 100, 64),
		"B_256x4_4+4_T100_B32": set(256, 4, 4, 100, 32),
		"C_512x8_4+4_T900_B1":  set(512, 8, 4, 900, 1),
	}
}

// BenchmarkTrainStep times whole training steps: forward, q target, backward
// and both optimizers.
func BenchmarkTrainStep(b *testing.B) {
	for name, c := range benchConfigs() {
		for bn, be := range simdBackends(b, 2) {
			for _, act := range []kernel.DType{kernel.Float32, kernel.BFloat16} {
				b.Run(name+"/"+bn+"/"+act.String(), func(b *testing.B) {
					m, err := NewModel(c.Arch, act, 1)
					require.NoError(b, err)
					l, err := NewLearner(m, be, c, 1000)
					require.NoError(b, err)
					defer l.Segment.Close()
					rows := randomRows(m.Config, c.GlobalBatchSize, 1)
					_, err = l.Step(rows)
					require.NoError(b, err)
					b.ReportAllocs()
					for b.Loop() {
						_, err := l.Step(rows)
						require.NoError(b, err)
					}
				})
			}
			be.Close()
		}
	}
}
