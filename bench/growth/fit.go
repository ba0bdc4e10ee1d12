package main

import "math"

// fit finds the coefficients of y = Σ c[k]·terms[k](x) with the least sum of
// squared relative errors, so that small sizes weigh as much as large ones.
func fit(x, y []float64, terms ...func(float64) float64) []float64 {
	n := len(terms)
	row := make([]float64, n)
	eq := make([][]float64, n) // normal equations of Σ (Σ c[k]·terms[k]/y - 1)², right side last
	for i := range eq {
		eq[i] = make([]float64, n+1)
	}
	for p := range x {
		for k, f := range terms {
			row[k] = f(x[p]) / y[p]
		}
		for i := range n {
			for k := range n {
				eq[i][k] += row[i] * row[k]
			}
			eq[i][n] += row[i]
		}
	}
	for i := range n { // Gauss and Jordan; the matrix is positive definite
		for k := n; k >= i; k-- {
			eq[i][k] /= eq[i][i]
		}
		for r := range n {
			for k := n; r != i && k >= i; k-- {
				eq[r][k] -= eq[r][i] * eq[i][k]
			}
		}
	}
	c := make([]float64, n)
	for i := range n {
		c[i] = eq[i][n]
	}
	return c
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
