package ref

import (
	"math"

	"deeploop/internal/kernel"
)

// ResidualNorm: y = gain ⊙ s·r, s = alpha*x + z.
func (b *Backend) ResidualNorm(y, rstd, x, z, gain kernel.Buf, alpha, eps float64, d int) {
	rows := kernel.CheckResidualNorm(y, rstd, x, z, gain, d)
	defer b.flush()
	if x.Type() == kernel.Float64 {
		residualNorm(b, out[float64](b, y, false), in[float64](b, rstd), in[float64](b, x), in[float64](b, z), in[float64](b, gain), alpha, eps, rows, d)
	} else {
		residualNorm(b, out[float32](b, y, false), in[float32](b, rstd), in[float32](b, x), in[float32](b, z), in[float32](b, gain), alpha, eps, rows, d)
	}
}

func residualNorm[S real](b *Backend, y, rstd, x, z, gain []S, alpha, eps float64, rows, d int) {
	b.split(rows, func(lo, hi int) {
		s := make([]float64, d)
		for r := lo; r < hi; r++ {
			residual(s, x, z, alpha, r*d)
			var sum float64
			for _, v := range s {
				sum += v * v
			}
			rs := 1 / math.Sqrt(sum/float64(d)+eps)
			rstd[r] = S(rs)
			for i, v := range s {
				v *= rs
				if gain != nil {
					v *= float64(gain[i])
				}
				y[r*d+i] = S(v)
			}
		}
	})
}

// residual: s = alpha*x + z for the row that begins at element at.
func residual[S real](s []float64, x, z []S, alpha float64, at int) {
	for i := range s {
		s[i] = alpha * float64(x[at+i])
		if z != nil {
			s[i] += float64(z[at+i])
		}
	}
}

// ResidualNormBackward: see kernel.Backend.
func (b *Backend) ResidualNormBackward(dx, dz, dgain, dy, y, rstd, x, z, gain kernel.Buf, alpha float64, d int) {
	rows := kernel.CheckResidualNormBackward(dx, dz, dgain, dy, y, rstd, x, z, gain, d)
	defer b.flush()
	if dy.Type() == kernel.Float64 {
		residualNormBackward(b, out[float64](b, dx, false), out[float64](b, dz, false), in[float64](b, dgain), in[float64](b, dy), in[float64](b, y),
			in[float64](b, rstd), in[float64](b, x), in[float64](b, z), in[float64](b, gain), alpha, rows, d)
	} else {
		residualNormBackward(b, out[float32](b, dx, false), out[float32](b, dz, false), in[float32](b, dgain), in[float32](b, dy), in[float32](b, y),
			in[float32](b, rstd), in[float32](b, x), in[float32](b, z), in[float32](b, gain), alpha, rows, d)
	}
}

func residualNormBackward[S real](b *Backend, dx, dz, dgain, dy, y, rstd, x, z, gain []S, alpha float64, rows, d int) {
	normed := func(n []float64, r int) {
		if gain == nil {
			for i := range n {
				n[i] = float64(y[r*d+i])
			}
			return
		}
		residual(n, x, z, alpha, r*d)
		for i := range n {
			n[i] *= float64(rstd[r])
		}
	}
	if dgain != nil { // before dx, which may be the memory of dy
		n, sum := make([]float64, d), make([]float64, d)
		for r := range rows {
			normed(n, r)
			for i, v := range n {
				sum[i] += float64(dy[r*d+i]) * v
			}
		}
		for i, v := range sum {
			dgain[i] += S(v)
		}
	}
	b.split(rows, func(lo, hi int) {
		n, g := make([]float64, d), make([]float64, d)
		for r := lo; r < hi; r++ {
			normed(n, r)
			var mean float64
			for i := range g {
				g[i] = float64(dy[r*d+i])
				if gain != nil {
					g[i] *= float64(gain[i])
				}
				mean += g[i] * n[i]
			}
			mean /= float64(d)
			for i := range g {
				ds := float64(rstd[r]) * (g[i] - n[i]*mean)
				dx[r*d+i] = S(alpha * ds)
				if dz != nil {
					dz[r*d+i] = S(ds)
				}
			}
		}
	})
}
