package deeploop

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"deeploop/internal/kernel"
	"deeploop/internal/kernel/ref"
)

// The table of architectures.md A.2.
func TestRuleTable(t *testing.T) {
	for _, c := range []struct {
		k, r               int
		alpha, beta, ratio float64
	}{
		{12, 1, 4.899, 0.1021, 0.02083}, {12, 3, 8.485, 0.05893, 0.006944},
		{12, 5, 10.954, 0.04564, 0.004167}, {12, 7, 12.961, 0.03858, 0.002976},
		{24, 1, 6.928, 0.07217, 0.01042}, {24, 3, 12.000, 0.04167, 0.003472},
		{24, 5, 15.492, 0.03227, 0.002083}, {24, 7, 18.330, 0.02728, 0.001488},
	} {
		r := Rule{P: 0.5, N: c.k * c.r}
		require.InEpsilon(t, c.alpha, r.Alpha(), 1e-3)
		require.InEpsilon(t, c.beta, r.Beta(), 1e-3)
		require.InEpsilon(t, c.ratio, r.Beta()/r.Alpha(), 1e-3)
	}
}

// The table of A.3: ratios and bounds of DeepNorm and DeepLoop.
func TestRuleBounds(t *testing.T) {
	for _, k := range []int{1, 2, 4, 12} {
		for _, loops := range []int{1, 2, 3, 7, 32} {
			n := k * loops
			norm, loop := Rule{P: 0.25, N: n}, Rule{P: 0.5, N: n}
			require.InEpsilon(t, 1/(2*math.Sqrt(float64(n))), norm.Beta()/norm.Alpha(), 1e-12)
			require.InEpsilon(t, 1/(4*float64(n)), loop.Beta()/loop.Alpha(), 1e-12)
			// untied
			require.InEpsilon(t, 0.5, norm.Bound(2*n, 1), 1e-12)
			require.InEpsilon(t, 1/(8*float64(n)), loop.Bound(2*n, 1), 1e-12)
			// tied and aligned
			require.InEpsilon(t, float64(loops)/2, norm.Bound(2*n, float64(loops)), 1e-12)
			require.InEpsilon(t, 1/(8*float64(k)), loop.Bound(2*n, float64(loops)), 1e-12)
		}
	}
	require.Equal(t, 1.0, Rule{P: 0, N: 5}.Alpha())
	require.Equal(t, 1.0, Rule{P: 0, N: 5}.Beta())
}

// Lemma A.1: rms(alpha x + z) = x + (z - <x,z>/d x)/alpha + O(rms(z)²/alpha²)
// for rms(x) = 1. The remainder must fall with alpha².
func TestLemmaA1(t *testing.T) {
	const d = 64
	r := rand.New(rand.NewPCG(3, 4))
	x, z := make([]float64, d), make([]float64, d)
	var xx, xz float64
	for i := range x {
		x[i], z[i] = r.NormFloat64(), r.NormFloat64()
		xx += x[i] * x[i]
	}
	for i := range x {
		x[i] /= math.Sqrt(xx / d)
		xz += x[i] * z[i]
	}
	be := ref.New(1)
	y, rstd := kernel.Alloc(kernel.Float64, d), kernel.Alloc(kernel.Float64, 1)
	for _, alpha := range []float64{10, 100, 1000} {
		be.ResidualNorm(y, rstd, kernel.F64(x), kernel.F64(z), kernel.Buf{}, alpha, 0, d)
		worst := 0.0
		for i := range x {
			worst = math.Max(worst, math.Abs(y.At(i)-(x[i]+(z[i]-xz/d*x[i])/alpha)))
		}
		require.Less(t, worst, 6/(alpha*alpha))
		require.Greater(t, worst, 1e-3/(alpha*alpha), "the remainder is of second order, not zero")
	}
}
