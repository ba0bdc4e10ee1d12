package profile

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestSpread(t *testing.T) {
	s := SpreadOf([]float64{4, 1, 3, 2})
	require.Equal(t, Spread{1, 2.5, 4, 4}, s)
	require.Equal(t, "1.0 / 2.5 / 4.0", s.Format("%.1f"))
	require.Equal(t, 3.0, SpreadOf([]float64{9, 3, 1}).Median)
	require.Equal(t, Spread{}, SpreadOf(nil))
	require.Equal(t, "-", Spread{}.Format("%.1f"))
}
