//go:build cgo && emulate_amx

package simd

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"deeploop/internal/kernel"
)

// The emulated product is that of Intel's manual: even and odd elements of the
// depth are summed apart from 0, each step one fused multiply-add, both sums
// are added, then the old value; subnormals are 0 everywhere. Steps in float64
// are exact before the one rounding, as the exponents lie near each other.
func TestEmulatedProduct(t *testing.T) {
	const rows, depth, cols = 16, 32, 16
	flush := func(x float64) float32 {
		if f := float32(x); math.Abs(float64(f)) >= 0x1p-126 {
			return f
		}
		return 0
	}
	for _, scale := range []float64{1, 0x1p-62, 0x1p-127} { // sums at 1, about the smallest normal number, operands below it
		r := rand.New(rand.NewPCG(1, 1))
		var a [rows][depth]kernel.BF16
		var b [depth / 2][2 * cols]kernel.BF16
		var c, want [rows][cols]float32
		bf16 := func() kernel.BF16 { return kernel.ToBF16(float32(scale * (1 + r.Float64()) * float64(1-2*r.IntN(2)))) }
		for i := range a {
			for k := range a[i] {
				a[i][k] = bf16()
			}
		}
		for k := range b {
			for j := range b[k] {
				b[k][j] = bf16()
			}
		}
		zero := true
		for i := range c {
			for j := range c[i] {
				c[i][j] = float32(scale * scale * r.NormFloat64())
				var sum [2]float32
				for k := range depth {
					x, y := flush(float64(a[i][k].Float32())), flush(float64(b[k/2][2*j+k%2].Float32()))
					sum[k%2] = flush(float64(x)*float64(y) + float64(sum[k%2]))
				}
				want[i][j] = flush(float64(flush(float64(c[i][j]))) + float64(flush(float64(sum[0])+float64(sum[1]))))
				zero = zero && want[i][j] == 0
			}
		}
		emulatedProduct(&c[0][0], &a[0][0], &b[0][0])
		require.Equal(t, want, c, "scale %g", scale)
		require.Equal(t, scale == 0x1p-127, zero)
	}
}
