package lm

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"deeploop/internal/kernel"
	"deeploop/internal/kernel/ref"
	"deeploop/internal/profile"
)

// The formulas give what the calls of a step add up to, for every switch.
func TestFlopsEqualWhatRuns(t *testing.T) {
	eachVariant(t, func(t *testing.T, c TrainConfig) {
		rec := profile.New(ref.New(1), time.Now)
		l := newTestLearner(t, c, kernel.Float32, rec)
		rec.Start()
		_, err := l.Step(randomBatches(c, 1))
		require.NoError(t, err)
		rec.Stop(1)
		require.Equal(t, c.TrainStepFlops(), rec.Flops())

		f, err := NewValidation(l.Model, rec, c.BatchSize)
		require.NoError(t, err)
		defer f.Close()
		rec.Take()
		rec.Start()
		require.NoError(t, f.Run(c.Arch.Loops))
		rec.Stop(1)
		per := c.Arch.FlopsPerToken()
		per.Attention /= 2
		require.Equal(t, per.Total()*float64(c.BatchSize*c.Arch.Context), rec.Flops())
	})
}

// The paper's small model: 6 operations a weight and token for training beside
// attention and head, as the literature counts.
func TestFlopsOfThePaper(t *testing.T) {
	c := PresetGPT2Small().Arch
	c.Vocabulary(50_257)
	f := c.FlopsPerToken()
	require.Equal(t, 2.*84_934_656, f.Blocks)
	require.Equal(t, 12*4.*1024*768, f.Attention)
	require.Equal(t, 2.*50_304*768, f.Head)
	c.Loops = 3
	g := c.FlopsPerToken()
	require.Equal(t, 3*f.Blocks, g.Blocks)
	require.Equal(t, 3*f.Attention, g.Attention)
	require.Equal(t, f.Head, g.Head)
}

func TestBench(t *testing.T) {
	c := tiny()
	c.GradAccum = 2
	b, err := NewBench(c, ref.New(1), kernel.Float32, time.Now)
	require.NoError(t, err)
	defer b.Close()
	for range 2 {
		got, err := b.TrainStep()
		require.NoError(t, err)
		require.Equal(t, c.TrainStepFlops(), got.Flops)
		require.Positive(t, got.Seconds)
		got, err = b.EvalBatch()
		require.NoError(t, err)
		require.Less(t, got.Flops, c.TrainStepFlops()/4)
	}
	require.Equal(t, 2, b.Learner.StepsDone)
}
