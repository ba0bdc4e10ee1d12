package main

import "math"

// fit finds a and b of y = a·f(x) + b·g(x) with the least sum of squared
// relative errors, so that small sizes weigh as much as large ones.
func fit(x, y []float64, f, g func(float64) float64) (a, b float64) {
	var ff, fg, gg, f1, g1 float64 // normal equations of (a·f/y + b·g/y - 1)²
	for i := range x {
		u, v := f(x[i])/y[i], g(x[i])/y[i]
		ff, fg, gg, f1, g1 = ff+u*u, fg+u*v, gg+v*v, f1+u, g1+v
	}
	det := ff*gg - fg*fg
	return (f1*gg - g1*fg) / det, (ff*g1 - fg*f1) / det
}

// quality of a fit: R² (1 is perfect) and the largest relative error.
func quality(y, fitted []float64) (r2, worst float64) {
	mean := 0.0
	for _, v := range y {
		mean += v / float64(len(y))
	}
	var left, all float64
	for i, v := range y {
		left += (v - fitted[i]) * (v - fitted[i])
		all += (v - mean) * (v - mean)
		worst = max(worst, math.Abs(fitted[i]/v-1))
	}
	return 1 - left/all, worst
}
