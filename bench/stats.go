package bench

import (
	"fmt"
	"math"
	"slices"
)

// Spread is what repeats of a measurement gave.
type Spread struct {
	Min    float64 `json:"min"`
	Median float64 `json:"median"`
	Max    float64 `json:"max"`
	N      int     `json:"n"`
}

// SpreadOf sums up values; with none all is zero.
func SpreadOf(values []float64) Spread {
	if len(values) == 0 {
		return Spread{}
	}
	v := slices.Sorted(slices.Values(values))
	return Spread{v[0], (v[(len(v)-1)/2] + v[len(v)/2]) / 2, v[len(v)-1], len(v)}
}

// Format prints minimum / median / maximum with a verb like "%.3f".
func (s Spread) Format(verb string) string {
	if s.N == 0 {
		return "-"
	}
	return fmt.Sprintf(verb+" / "+verb+" / "+verb, s.Min, s.Median, s.Max)
}

// Ratios divides a by b pair by pair.
func Ratios(a, b []float64) []float64 {
	r := make([]float64, min(len(a), len(b)))
	for i := range r {
		r[i] = a[i] / b[i]
	}
	return r
}

// GeometricMean of values, 0 of none.
func GeometricMean(values []float64) float64 {
	if len(values) == 0 {
		return 0
	}
	var sum float64
	for _, v := range values {
		sum += math.Log(v)
	}
	return math.Exp(sum / float64(len(values)))
}
