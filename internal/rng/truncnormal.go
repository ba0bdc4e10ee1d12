package rng

import "math"

// truncAt is where the initialiser cuts the normal distribution, in sigmas.
const truncAt = 2

// TruncNormalScale returns the sigma of the normal distribution that has
// standard deviation std after cutting at two sigmas:
//
//	std / √(1 − 4φ(2)/(2Φ(2)−1)),
//
// about 1.1368·std. Samples of FillTruncNormal lie within twice this value.
func TruncNormalScale(std float64) float64 {
	z := math.Erf(truncAt / math.Sqrt2)
	pdf := math.Exp(-truncAt*truncAt/2.0) / math.Sqrt(2*math.Pi)
	return std / math.Sqrt(1-2*truncAt*pdf/z)
}

// FillTruncNormal fills dst with the reference initialiser's distribution: a
// normal cut at two sigmas and rescaled so that its real standard deviation is
// std. One draw per element, by inversion; std 0 gives zeros and draws
// nothing.
func FillTruncNormal[T float32 | float64](s *Stream, dst []T, std float64) {
	if std == 0 {
		clear(dst)
		return
	}
	sigma := TruncNormalScale(std)
	edge := math.Erf(truncAt / math.Sqrt2)
	bound := truncAt * sigma
	for i := range dst {
		u := edge * (2*s.Float64() - 1)
		x := math.Sqrt2 * sigma * math.Erfinv(u)
		dst[i] = T(min(max(x, -bound), bound))
	}
}
