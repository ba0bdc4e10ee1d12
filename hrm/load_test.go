package hrm

import (
	"testing"

	"github.com/stretchr/testify/require"

	"deeploop/deeploop"

	"deeploop/internal/kernel"
	"deeploop/internal/kernel/ref"
)

// alpha and beta stay those of training when depth changes at evaluation, while
// the result does change.
func TestAlphaAndBetaStayAtAnotherDepth(t *testing.T) {
	for _, placement := range []string{PlacementDeepLoop, PlacementDeepNorm, PlacementPostNorm, PlacementPreNorm} {
		c := tiny().Arch
		c.Placement = placement
		c.PH, c.InnerNorm = deeploop.Placement(placement).Defaults()
		c.PL = c.PH
		trained, err := NewModel(c, kernel.Float32, 1)
		require.NoError(t, err)
		deep := c.AtDepth(Depth{HCycles: 3, LCycles: 7, HaltMaxSteps: 2})
		require.Equal(t, []int{3, 7, 2}, []int{deep.HCycles, deep.LCycles, deep.HaltMaxSteps})
		require.NotEqual(t, c.EffectiveDepth(), deep.EffectiveDepth())
		m, err := NewModel(deep, kernel.Float32, 1)
		require.NoError(t, err, placement)
		require.Equal(t, []float64{trained.H.Residual.Alpha, trained.H.Beta}, []float64{m.H.Residual.Alpha, m.H.Beta})
		require.Equal(t, []float64{trained.L.Residual.Alpha, trained.L.Beta}, []float64{m.L.Residual.Alpha, m.L.Beta})
		same := c.AtDepth(Depth{})
		same.AlphaH, same.AlphaL, same.BetaH, same.BetaL = c.AlphaH, c.AlphaL, c.BetaH, c.BetaL
		require.Equal(t, c, same)

		// With the trained weights the deeper model gives other logits.
		for i, p := range m.Params() {
			copy(p.Data.Bytes(), trained.Params()[i].Data.Bytes())
			p.Changed()
		}
		rows := randomRows(c, 2, 1)
		logits := func(m *Model) []float32 {
			s, err := NewSegment(m, ref.New(1), 2)
			require.NoError(t, err)
			defer s.Close()
			_, err = NewEvaluator(s).Run(t.Context(), rows, nil)
			require.NoError(t, err)
			return append([]float32(nil), s.Logits().Float32s()...)
		}
		require.NotEqual(t, logits(trained), logits(m))
	}
}
