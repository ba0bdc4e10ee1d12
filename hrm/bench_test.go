package hrm

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"deeploop/internal/kernel"
	"deeploop/internal/kernel/pick/picktest"
	"deeploop/internal/profile"
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
func BenchmarkTrainStep(b *testing.B) { benchmark(b, (*Bench).TrainStep) }

// BenchmarkEvalSegment times segments of evaluation with the heads.
func BenchmarkEvalSegment(b *testing.B) { benchmark(b, (*Bench).EvalSegment) }

func benchmark(b *testing.B, one func(*Bench) (profile.Timing, error)) {
	for name, c := range benchConfigs() {
		for bn, be := range picktest.Backends(b, 2) {
			if bn == "ref" { // takes minutes
				continue
			}
			for _, act := range []kernel.DType{kernel.Float32, kernel.BFloat16} {
				b.Run(name+"/"+bn+"/"+act.String(), func(b *testing.B) {
					x, err := NewBench(c, be, act, time.Now)
					require.NoError(b, err)
					defer x.Close()
					_, err = one(x)
					require.NoError(b, err)
					b.ReportAllocs()
					var sum profile.Timing
					for b.Loop() {
						t, err := one(x)
						require.NoError(b, err)
						sum.Seconds += t.Seconds
						sum.Flops += t.Flops
					}
					b.ReportMetric(sum.Flops/sum.Seconds/1e9, "GFLOP/s")
				})
			}
		}
	}
}

// Weights are packed by the backend that computes, not by the one that
// records: both work on the same copies.
func TestBenchLeavesPackingToTheBackend(t *testing.T) {
	for name, be := range picktest.Backends(t, 1) {
		if name == "ref" { // packs nothing
			continue
		}
		x, err := NewBench(tiny(), be, kernel.Float32, time.Now)
		require.NoError(t, err)
		_, err = x.TrainStep()
		require.NoError(t, err)
		require.Equal(t, be, x.Learner.Model.L.Blocks[0].O.PackedBy, name)
		first, err := x.EvalSegment()
		require.NoError(t, err)
		require.Equal(t, x.Learner.Model.Config.EvalSegmentFlops(2), first.Flops)
		require.Positive(t, first.Seconds)
		x.Close()
	}
}
