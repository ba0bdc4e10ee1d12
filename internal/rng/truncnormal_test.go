package rng

import (
	"encoding/json"
	"math"
	"os"
	"slices"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"deeploop/internal/goldentest"
)

func TestTruncNormalGolden(t *testing.T) {
	goldentest.Each(t, goldentest.Cases(t, "testdata", "trunc_normal*.json"), checkTruncNormal)
}

// checkTruncNormal compares moments, bounds and quantiles of our samples with
// those recorded from the reference's initialiser.
func checkTruncNormal(t *testing.T, path string) {
	b, err := os.ReadFile(path)
	require.NoError(t, err)
	var cases []struct {
		Std       float64            `json:"std"`
		N         int                `json:"n"`
		Kurtosis  float64            `json:"kurtosis"`
		CompStd   float64            `json:"comp_std"`
		Bound     float64            `json:"bound"`
		Quantiles map[string]float64 `json:"quantiles"`
	}
	require.NoError(t, json.Unmarshal(b, &cases))
	require.NotEmpty(t, cases)
	for i, c := range cases {
		require.InEpsilon(t, c.CompStd, TruncNormalScale(c.Std), 1e-12)
		require.InEpsilon(t, c.Bound, 2*TruncNormalScale(c.Std), 1e-12)
		const n = 500_000
		noise := 1/math.Sqrt(n) + 1/math.Sqrt(float64(c.N)) // ours and theirs
		x := make([]float64, n)
		FillTruncNormal(NewStream(uint64(i), "init"), x, c.Std)
		var m1, m2, m4 float64
		for _, v := range x {
			m1 += v / n
		}
		for _, v := range x {
			d := (v - m1) * (v - m1)
			m2 += d / n
			m4 += d * d / n
		}
		require.InDelta(t, 0, m1, 4*c.Std/math.Sqrt(n), "mean at std %v", c.Std)
		require.InEpsilon(t, c.Std, math.Sqrt(m2), 0.003)
		require.InEpsilon(t, c.Kurtosis, m4/(m2*m2), 5*noise)
		slices.Sort(x)
		require.LessOrEqual(t, x[n-1], c.Bound)
		require.GreaterOrEqual(t, x[0], -c.Bound)
		require.InEpsilon(t, c.Bound, x[n-1], 1e-3)
		for q, want := range c.Quantiles {
			p, err := strconv.ParseFloat(q, 64)
			require.NoError(t, err)
			require.InDelta(t, want, x[int(p*n)], 5*noise*c.Std, "quantile %s at std %v", q, c.Std)
		}
	}
}

func TestTruncNormalZeroStd(t *testing.T) {
	s, ref := NewStream(1, "x"), NewStream(1, "x")
	dst := []float32{1, 2, 3}
	FillTruncNormal(s, dst, 0)
	require.Equal(t, []float32{0, 0, 0}, dst)
	require.Equal(t, ref.Uint64(), s.Uint64(), "nothing was drawn")
}
