package bench

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestStats(t *testing.T) {
	require.Equal(t, []float64{2, 3}, Ratios([]float64{4, 9, 1}, []float64{2, 3}))
	require.InDelta(t, 4, GeometricMean([]float64{2, 8}), 1e-12)
	require.Zero(t, GeometricMean(nil))
}

func TestMachineNamesWhatKernelsUse(t *testing.T) {
	require.Equal(t, []string{"avx2", "fma"}, kernelFeatures([]string{"fma", "sse", "avx2"}))
	m := Machine{Date: "today", Features: []string{"avx2"}, Peer: "none"}
	require.Regexp(t, `^## Steps\n\ntoday, .*\(avx2\).*peer: none\n\n$`, m.Heading("Steps"))
}
