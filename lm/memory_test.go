package lm

import (
	"testing"

	"github.com/stretchr/testify/require"

	"deeploop/internal/kernel"
	"deeploop/internal/kernel/ref"
)

// The estimate of the tape stays below the memory that graphs with gradient
// plan, and above half of it.
func TestTapeEstimateCountsLow(t *testing.T) {
	eachVariant(t, func(t *testing.T, c TrainConfig) {
		c.BatchSize, c.Arch.Layers, c.Arch.MLPWidth = 8, 6, 64 // most of the plan is tape
		l := newTestLearner(t, c, kernel.Float32, ref.New(1))
		planned := 0
		switch g := l.gradient.(type) {
		case flat:
			planned, _ = g.PlannedBytes()
		case *recompute:
			planned, _ = g.round.PlannedBytes()
			for _, s := range g.states {
				planned += len(s.Bytes())
			}
		}
		require.LessOrEqual(t, c.tapeBytes(kernel.Float32), float64(planned))
		require.Greater(t, c.tapeBytes(kernel.Float32), float64(planned)/2)
	})
}

// What is added up over batches, or over rounds, has memory of its own.
func TestGradientsHaveMemory(t *testing.T) {
	c := tiny()
	weights, one := 4*float64(c.Arch.NumParams()), c.TrainingBytes(kernel.Float32)
	require.Equal(t, 3*weights+max(weights, c.tapeBytes(kernel.Float32)), one)
	c.GradAccum = 2
	require.Equal(t, 4*weights+c.tapeBytes(kernel.Float32), c.TrainingBytes(kernel.Float32))
	c.EMA = true
	require.Equal(t, 5*weights+c.tapeBytes(kernel.Float32), c.TrainingBytes(kernel.Float32))
}
