package ref

import "deeploop/internal/kernel"

var _ kernel.Limits = (*Backend)(nil)

// Operands of a probe: rows as long as those of a common model, together in the
// nearest cache.
const (
	probeDepth = 512
	probeRows  = 4
)

// ProbeProducts implements kernel.Limits with the loop of LinearDX and
// LinearDW, which is a tenth faster than Linear's, on operands that stay in the
// nearest cache: float64 for Float64, else float32. A round is 65,536
// operations of each thread.
func (b *Backend) ProbeProducts(t kernel.DType, n int) float64 {
	if t == kernel.Float64 {
		return probeProducts[float64](b, n)
	}
	return probeProducts[float32](b, n)
}

func probeProducts[S real](b *Backend, n int) float64 {
	const repeats = 65536 / (2 * probeRows * probeDepth)
	b.split(b.threads, func(lo, hi int) {
		for range hi - lo {
			row, w, a := make([]S, probeDepth), make([]S, probeRows*probeDepth), make([]S, probeRows)
			for i := range w {
				w[i] = S(i%7) / probeDepth
			}
			for i := range a {
				a[i] = S(i+1) / probeDepth
			}
			for range n * repeats {
				addRows(row, a, 1, w)
			}
		}
	})
	return float64(b.threads) * float64(n) * 65536
}

// ProbeCopy implements kernel.Limits.
func (b *Backend) ProbeCopy(dst, src kernel.Buf) {
	d, s := dst.Float32s(), src.Float32s()
	if len(d) != len(s) {
		panic("kernel: ProbeCopy lengths do not fit")
	}
	b.split(len(d), func(lo, hi int) { copy(d[lo:hi], s[lo:hi]) })
}
