package kernel

import "math"

// RopeTables returns cos and sin of the rotary angles, each
// [positions, headDim/2]: entry (p, i) is the angle p·θ^(−2i/headDim). The
// angle is rounded to float32 at the same two places as in the reference code
// (frequency, then product with the position), and the cosine is taken of that
// angle: at position 900 this rounding shows in the fifth digit. headDim must
// be even.
func RopeTables(t DType, positions, headDim int, theta float64) (cos, sin Buf) {
	mustFit(headDim > 0 && headDim%2 == 0 && positions >= 0, badOddRotary)
	half := headDim / 2
	cos, sin = Alloc(t.Master(), positions*half), Alloc(t.Master(), positions*half)
	for i := range half {
		// the exponent 2i/headDim and the power are float32 there too
		power := float32(math.Pow(theta, float64(float32(2*i)/float32(headDim))))
		freq := 1 / power
		for p := range positions {
			s, c := math.Sincos(float64(float32(p) * freq))
			cos.SetAt(p*half+i, c)
			sin.SetAt(p*half+i, s)
		}
	}
	return cos, sin
}
