package ref

import (
	"math"

	"deeploop/internal/kernel"
)

// QKNorm: RMSNorm of each head of q and k, see kernel.Backend.
func (b *Backend) QKNorm(y, rstd, qkv, gq, gk kernel.Buf, s kernel.AttentionShape, eps float64) {
	kernel.CheckQKNorm(y, rstd, qkv, gq, gk, s)
	defer b.flush()
	if y.Type() == kernel.Float64 {
		qkNorm(b, out[float64](b, y, false), in[float64](b, rstd), in[float64](b, qkv), in[float64](b, gq), in[float64](b, gk), s, eps)
	} else {
		qkNorm(b, out[float32](b, y, false), in[float32](b, rstd), in[float32](b, qkv), in[float32](b, gq), in[float32](b, gk), s, eps)
	}
}

func qkNorm[S real](b *Backend, y, rstd, qkv, gq, gk []S, s kernel.AttentionShape, eps float64) {
	b.split(s.B*s.T, func(lo, hi int) {
		for m := lo; m < hi; m++ {
			for h := range 2 * s.N {
				at := (m*3*s.N + h) * s.K
				x, gain := qkv[at:at+s.K], gainOf(gq, gk, h, s)
				var sum float64
				for _, v := range x {
					sum += float64(v) * float64(v)
				}
				r := 1 / math.Sqrt(sum/float64(s.K)+eps)
				rstd[m*2*s.N+h] = S(r)
				for i, v := range x {
					y[at+i] = S(float64(v) * r * times(gain, i))
				}
			}
			v := (m*3 + 2) * s.N * s.K
			copy(y[v:v+s.N*s.K], qkv[v:])
		}
	})
}

// gainOf returns the gain of a token's head h, the N of q before the N of k.
func gainOf[S real](gq, gk []S, h int, s kernel.AttentionShape) []S {
	if h < s.N {
		return gq
	}
	return gk
}

// times is element i of a gain that may be absent.
func times[S real](gain []S, i int) float64 {
	if gain == nil {
		return 1
	}
	return float64(gain[i])
}

// QKNormBackward: see kernel.Backend.
func (b *Backend) QKNormBackward(dqkv, dgq, dgk, dy, qkv, rstd, gq, gk kernel.Buf, s kernel.AttentionShape) {
	kernel.CheckQKNormBackward(dqkv, dgq, dgk, dy, qkv, rstd, gq, gk, s)
	defer b.flush()
	if dy.Type() == kernel.Float64 {
		qkNormBackward(b, out[float64](b, dqkv, false), in[float64](b, dgq), in[float64](b, dgk), in[float64](b, dy), in[float64](b, qkv),
			in[float64](b, rstd), in[float64](b, gq), in[float64](b, gk), s)
	} else {
		qkNormBackward(b, out[float32](b, dqkv, false), in[float32](b, dgq), in[float32](b, dgk), in[float32](b, dy), in[float32](b, qkv),
			in[float32](b, rstd), in[float32](b, gq), in[float32](b, gk), s)
	}
}

func qkNormBackward[S real](b *Backend, dqkv, dgq, dgk, dy, qkv, rstd, gq, gk []S, s kernel.AttentionShape) {
	for first, dgain := range [][]S{dgq, dgk} { // before dqkv, which may be the memory of dy
		if dgain == nil {
			continue
		}
		sum := make([]float64, s.K)
		for m := range s.B * s.T {
			for h := first * s.N; h < (first+1)*s.N; h++ {
				at := (m*3*s.N + h) * s.K
				for i := range sum {
					sum[i] += float64(dy[at+i]) * float64(qkv[at+i]) * float64(rstd[m*2*s.N+h])
				}
			}
		}
		for i, v := range sum {
			dgain[i] += S(v)
		}
	}
	b.split(s.B*s.T, func(lo, hi int) {
		n, g := make([]float64, s.K), make([]float64, s.K)
		for m := lo; m < hi; m++ {
			for h := range 2 * s.N {
				at, r, gain := (m*3*s.N+h)*s.K, float64(rstd[m*2*s.N+h]), gainOf(gq, gk, h, s)
				var mean float64
				for i := range g {
					n[i], g[i] = float64(qkv[at+i])*r, float64(dy[at+i])*times(gain, i)
					mean += g[i] * n[i]
				}
				mean /= float64(s.K)
				for i := range g {
					dqkv[at+i] = S(r * (g[i] - n[i]*mean))
				}
			}
			v := (m*3 + 2) * s.N * s.K
			copy(dqkv[v:v+s.N*s.K], dy[v:])
		}
	})
}
