package optim

import "math"

// Cosine is the reference's schedule: a linear warm-up from 0 to Base, then
// half a cosine down to MinRatio·Base at step Total. Steps past Total are not
// clamped: the cosine rises again, as in the reference code. MinRatio 1 (the
// reference's default) is a constant rate after the warm-up.
type Cosine struct {
	Base     float64
	Warmup   int
	Total    int
	MinRatio float64
}

// At returns the rate of a step. The trainer counts steps from 1, so its first
// update uses At(1) = Base/Warmup.
func (c Cosine) At(step int) float64 {
	if step < c.Warmup {
		return c.Base * float64(step) / float64(max(1, c.Warmup))
	}
	progress := float64(step-c.Warmup) / float64(max(1, c.Total-c.Warmup))
	wave := 0.5 * (1 + math.Cos(math.Pi*progress))
	return c.Base * (c.MinRatio + math.Max(0, (1-c.MinRatio)*wave))
}
