package hrm

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"deeploop/internal/kernel"
	"deeploop/internal/kernel/ref"
	"deeploop/internal/profile"
)

// The formulas give what the calls of a step and of a segment add up to, for
// every switch of the architecture.
func TestFlopsEqualWhatRuns(t *testing.T) {
	change := variants()
	change["deep"] = func(c *Config) { c.HLayers, c.LLayers, c.HCycles, c.LCycles = 3, 2, 3, 1 }
	change["wide"] = func(c *Config) { c.HiddenSize, c.PuzzleEmbDim, c.SeqLen, c.VocabSize = 24, 30, 19, 7 }
	for name, f := range change {
		t.Run(name, func(t *testing.T) {
			c := tiny()
			f(&c.Arch)
			c.GlobalBatchSize = 3
			rec := profile.New(ref.New(1), time.Now)
			m, err := NewModel(c.Arch, kernel.Float32, 1)
			require.NoError(t, err)
			l, err := NewLearner(m, rec, c, 10)
			require.NoError(t, err)
			defer l.Segment.Close()
			rows := randomRows(c.Arch, c.GlobalBatchSize, 1)

			rec.Start()
			_, err = l.Step(rows)
			require.NoError(t, err)
			rec.Stop(1)
			require.Equal(t, rec.Flops(), c.Arch.TrainStepFlops(c.GlobalBatchSize))

			rec.Take()
			rec.Start()
			require.NoError(t, l.Segment.Embed())
			require.NoError(t, l.Segment.Eval(true))
			rec.Stop(1)
			require.Equal(t, rec.Flops(), c.Arch.EvalSegmentFlops(c.GlobalBatchSize))
		})
	}
}
