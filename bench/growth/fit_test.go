package main

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestFitFindsWhatMadeTheFigures(t *testing.T) {
	x := []float64{25, 50, 100, 200, 400, 900}
	y := make([]float64, len(x))
	for i, v := range x {
		y[i] = 0.1 + 0.002*v + 3e-6*v*v
	}
	c := fit(x, y, constant, identity, square)
	require.InDeltaSlice(t, []float64{1, 1, 1}, []float64{c[0] / 0.1, c[1] / 0.002, c[2] / 3e-6}, 1e-9)
	r2, worst := quality(y, y)
	require.Equal(t, 1.0, r2)
	require.Zero(t, worst)

	for i, v := range x {
		y[i] = 0.3 + 0.01*v
	}
	y[2] *= 1.01
	c = fit(x, y, constant, identity)
	require.InEpsilon(t, 0.3, c[0], 0.05)
	require.InEpsilon(t, 0.01, c[1], 0.01)
	fitted := make([]float64, len(x))
	for i, v := range x {
		fitted[i] = c[0] + c[1]*v
	}
	r2, worst = quality(y, fitted)
	require.Greater(t, r2, 0.999)
	require.InDelta(t, 0.01, worst, 0.005)
}
