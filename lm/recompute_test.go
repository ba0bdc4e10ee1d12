package lm

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"deeploop/deeploop"
	"deeploop/internal/graph"
	"deeploop/internal/kernel"
	"deeploop/internal/kernel/pick/picktest"
	"deeploop/internal/kernel/ref"
)

// Losses, gradients and weights over some steps equal those of one graph bit
// for bit: each sum has the same terms in the same order.
func TestRecomputeEqualsFlat(t *testing.T) {
	for name, be := range picktest.Backends(t, 2) {
		for _, act := range []kernel.DType{kernel.Float32, kernel.BFloat16} {
			t.Run(name+" "+act.String(), func(t *testing.T) {
				eachVariant(t, func(t *testing.T, c TrainConfig) {
					var want [][]byte
					var losses []StepMetrics
					for _, loops := range []bool{false, true} {
						c.CheckpointLoops = loops
						l := newTestLearner(t, c, act, be)
						shake(l.Model, 5)
						batches := randomBatches(c, 7)
						var got [][]byte
						var metrics []StepMetrics
						for range 3 {
							m, err := l.Step(batches)
							require.NoError(t, err)
							metrics = append(metrics, m)
							for _, p := range l.Params {
								got = append(got, slices.Clone(p.G.Bytes()), slices.Clone(p.W.Bytes()))
							}
						}
						if want == nil {
							want, losses = got, metrics
							continue
						}
						require.Equal(t, losses, metrics)
						require.Equal(t, want, got)
					}
				})
			})
		}
	}
}

// R = 16 takes the memory of R = 2 and the states between rounds; the whole
// graph takes that of all rounds.
func TestRecomputeMemory(t *testing.T) {
	be := ref.New(1)
	for _, p := range []deeploop.Placement{deeploop.DeepLoop, deeploop.PreNorm} {
		planned := func(loops int) (inGraphs, states int) {
			c := PresetTesting()
			place(p)(&c)
			c.Arch.Loops, c.Arch.VocabSize, c.CheckpointLoops = loops, 65, true
			l := newTestLearner(t, c, kernel.Float32, be)
			r := l.gradient.(*recompute)
			f := r.forward
			for _, g := range []*graph.Runner{r.head, r.round, r.embed, f.embed, f.round, f.head} {
				n, _ := g.PlannedBytes()
				inGraphs += n
			}
			for _, s := range r.states {
				states += len(s.Bytes())
			}
			require.Equal(t, (loops+1)*4*c.BatchSize*c.Arch.Context*c.Arch.HiddenSize, states)
			return inGraphs, states
		}
		two, _ := planned(2)
		sixteen, _ := planned(16)
		require.Equal(t, two, sixteen)

		flat := func(loops int) int {
			c := PresetTesting()
			place(p)(&c)
			c.Arch.Loops, c.Arch.VocabSize = loops, 65
			n, _ := newTestLearner(t, c, kernel.Float32, be).gradient.(flat).PlannedBytes()
			return n
		}
		require.Greater(t, flat(16), 5*flat(2))
		_, states := planned(16)
		require.Less(t, 3*(sixteen+states), flat(16))
	}
}
