package hrm

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"deeploop/internal/check"
	"deeploop/internal/kernel"
	"deeploop/internal/kernel/ref"
)

// The published model fits a large machine, not a small one, and the message
// has both numbers.
func TestMemoryIsCheckedBeforeBuilding(t *testing.T) {
	c := PresetHRMv1()
	c.Arch.SeqLen, c.Arch.VocabSize, c.Arch.NumPuzzleIdentifiers = 900, 12, 900_000
	require.NoError(t, c.CheckTraining(kernel.Float32, 0), "unknown: nothing is refused")
	require.NoError(t, c.CheckTraining(kernel.BFloat16, 256e9))
	err := c.CheckTraining(kernel.Float32, 16e9)
	var memory *check.MemoryError
	require.ErrorAs(t, err, &memory)
	require.True(t, memory.BadInput())
	require.ErrorContains(t, err, "this machine has 16 GB")
	require.ErrorContains(t, err, "27276290 parameters on batches of 768 rows needs at least ")
	require.Greater(t, memory.Need, 50e9)

	bf16 := c
	bf16.GlobalBatchSize = 8
	require.NoError(t, bf16.CheckTraining(kernel.BFloat16, 16e9))
	table := 900_000 * 512 * 4.0
	require.Error(t, bf16.CheckTraining(kernel.BFloat16, uint64(table)), "the table of task embeddings counts")

	require.NoError(t, c.Arch.CheckEvaluation(kernel.Float32, 8, 16e9))
	require.Error(t, c.Arch.CheckEvaluation(kernel.Float32, 1<<20, 16e9))
}

// The largest sizes that pass Validate are refused, without overflow.
func TestMemoryOfTheLargestSizes(t *testing.T) {
	c := PresetTesting()
	c.Arch.HiddenSize, c.Arch.NumHeads, c.Arch.Expansion, c.Arch.HLayers, c.Arch.LLayers = 1<<16, 1, 1<<10, 1<<10, 1<<10
	c.Arch.PuzzleEmbDim, c.GlobalBatchSize = 1<<20, math.MaxInt32
	require.NoError(t, c.Validate())
	c.Arch.SeqLen, c.Arch.VocabSize, c.Arch.NumPuzzleIdentifiers = 1<<20, 1<<20, math.MaxInt32
	require.NoError(t, c.Arch.ValidateSizes())
	require.Error(t, c.CheckTraining(kernel.Float32, math.MaxUint64))
	require.Error(t, c.Arch.CheckEvaluation(kernel.Float32, math.MaxInt32, math.MaxUint64))
}

// The estimate counts low: it stays below what a model takes.
func TestMemoryEstimateCountsLow(t *testing.T) {
	for name, change := range variants() {
		c := tiny()
		change(&c.Arch)
		m, err := NewModel(c.Arch, kernel.Float32, 1)
		require.NoError(t, err)
		took := 4 * m.PuzzleTable.Len()
		for _, p := range m.Params() {
			took += 4 * 4 * p.Data.Len()
		}
		require.InDelta(t, took, c.Arch.modelBytes(kernel.Float32, 4), 0, name)
	}
}

// So does the tape's: it stays below the memory that the graph with gradient
// plans, and above half of it.
func TestTapeEstimateCountsLow(t *testing.T) {
	for name, change := range variants() {
		c := tiny()
		change(&c.Arch)
		c.GlobalBatchSize, c.Arch.LLayers = 4, 6 // most of the plan is tape
		if !c.Arch.OneNetwork() {
			c.Arch.HLayers = 6
		}
		m, err := NewModel(c.Arch, kernel.Float32, 1)
		require.NoError(t, err)
		l, err := NewLearner(m, ref.New(1), c, 10)
		require.NoError(t, err)
		planned, _ := l.Segment.train.PlannedBytes()
		l.Segment.Close()
		got := c.Arch.tapeBytes(kernel.Float32, c.GlobalBatchSize)
		require.LessOrEqual(t, got, float64(planned), name)
		require.Greater(t, got, float64(planned)/2, name)
	}
}
