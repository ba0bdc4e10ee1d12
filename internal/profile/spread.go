package profile

import (
	"fmt"
	"slices"
)

// Spread is what n repeats of a measurement gave.
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
	return Spread{slices.Min(values), Median(values), slices.Max(values), len(values)}
}

// Format prints minimum / median / maximum with a verb like "%.3f".
func (s Spread) Format(verb string) string {
	if s.N == 0 {
		return "-"
	}
	return fmt.Sprintf(verb+" / "+verb+" / "+verb, s.Min, s.Median, s.Max)
}

// Median of values, 0 of none; the mean of the two in the middle of an even
// number.
func Median(values []float64) float64 {
	if len(values) == 0 {
		return 0
	}
	v := slices.Sorted(slices.Values(values))
	return (v[(len(v)-1)/2] + v[len(v)/2]) / 2
}
