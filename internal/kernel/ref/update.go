package ref

import (
	"math"

	"deeploop/internal/kernel"
)

// AdamATan2: one optimizer step. The moments follow the reference code to the
// last bit (see mix), and are rounded to their own type before the quotient is
// taken: second moments of tiny gradients are subnormal and have few bits, and
// one that underflows to zero gives ±π/2. The rest is in float64.
func (b *Backend) AdamATan2(w, g, m, v kernel.Buf, h kernel.AdamHyper) {
	kernel.CheckAdam(w, g, m, v, h)
	if w.Type() == kernel.Float64 {
		adamATan2(b, in[float64](b, w), in[float64](b, g), in[float64](b, m), in[float64](b, v), h)
	} else {
		adamATan2(b, in[float32](b, w), in[float32](b, g), in[float32](b, m), in[float32](b, v), h)
	}
}

func adamATan2[S real](b *Backend, w, g, m, v []S, h kernel.AdamHyper) {
	avg := in[S](b, h.Average)
	decay := 1 - h.LR*h.WeightDecay
	step := h.LR / (1 - math.Pow(h.Beta1, float64(h.Step)))
	root := 1 / math.Sqrt(1-math.Pow(h.Beta2, float64(h.Step)))
	c1, c2 := S(1-h.Beta1), S(1-h.Beta2)
	b.split(len(w), func(lo, hi int) {
		for i := lo; i < hi; i++ {
			m[i] = mix(m[i], g[i], c1)
			v[i] = mix(v[i], g[i]*g[i], c2)
			w[i] = S(float64(w[i])*decay - step*math.Atan2(float64(m[i]), math.Sqrt(float64(v[i]))*root))
			average(h, avg, w, i)
		}
	})
}

// AdamW: one optimizer step. The scaled gradient and the moments are rounded
// to their own type, as for AdamATan2; the rest is in float64.
func (b *Backend) AdamW(w, g, m, v kernel.Buf, h kernel.AdamHyper) {
	kernel.CheckAdam(w, g, m, v, h)
	if w.Type() == kernel.Float64 {
		adamW(b, in[float64](b, w), in[float64](b, g), in[float64](b, m), in[float64](b, v), h)
	} else {
		adamW(b, in[float32](b, w), in[float32](b, g), in[float32](b, m), in[float32](b, v), h)
	}
}

func adamW[S real](b *Backend, w, g, m, v []S, h kernel.AdamHyper) {
	avg := in[S](b, h.Average)
	decay := 1 - h.LR*h.WeightDecay
	step := h.LR / (1 - math.Pow(h.Beta1, float64(h.Step)))
	root := 1 / math.Sqrt(1-math.Pow(h.Beta2, float64(h.Step)))
	c1, c2, scale := S(1-h.Beta1), S(1-h.Beta2), S(h.GradScale)
	b.split(len(w), func(lo, hi int) {
		for i := lo; i < hi; i++ {
			x := S(g[i] * scale)
			m[i] = mix(m[i], x, c1)
			v[i] = mix(v[i], x*x, c2)
			w[i] = S(float64(w[i])*decay - step*float64(m[i])/(math.Sqrt(float64(v[i]))*root+h.Eps))
			average(h, avg, w, i)
		}
	})
}

// average takes the new weight i into its moving average, where there is one.
func average[S real](h kernel.AdamHyper, avg, w []S, i int) {
	if avg != nil {
		avg[i] = S(h.AverageRate*float64(avg[i]) + (1-h.AverageRate)*float64(w[i]))
	}
}

// mix = (1-c)*old + c*x, in the order c*x + (old - c*old) with each bracket
// fused, that is rounded once. Products of two float32 are exact in float64.
func mix[S real](old, x, c S) S {
	rest := S(float64(old) - float64(c)*float64(old))
	return S(float64(c)*float64(x) + float64(rest))
}

// SignSGD: w = w*(1-lr*wd) - lr*sign(g), each operation in w's own type.
func (b *Backend) SignSGD(w, g kernel.Buf, lr, wd float64) {
	kernel.CheckUpdate(w, g)
	if w.Type() == kernel.Float64 {
		signSGD(b, in[float64](b, w), in[float64](b, g), lr, 1-lr*wd)
	} else {
		signSGD(b, in[float32](b, w), in[float32](b, g), float32(lr), float32(1-lr*wd))
	}
}

func signSGD[S real](b *Backend, w, g []S, lr, decay S) {
	b.split(len(w), func(lo, hi int) {
		for i := lo; i < hi; i++ {
			x := S(w[i] * decay) // the conversion keeps the compiler from fusing
			switch {
			case g[i] > 0:
				x -= lr
			case g[i] < 0:
				x += lr
			}
			w[i] = x
		}
	})
}

// Lerp: dst = rate*dst + (1-rate)*src.
func (b *Backend) Lerp(dst, src kernel.Buf, rate float64) {
	kernel.CheckUpdate(dst, src)
	if dst.Type() == kernel.Float64 {
		lerp(b, in[float64](b, dst), in[float64](b, src), rate)
	} else {
		lerp(b, in[float32](b, dst), in[float32](b, src), rate)
	}
}

func lerp[S real](b *Backend, dst, src []S, rate float64) {
	b.split(len(dst), func(lo, hi int) {
		for i := lo; i < hi; i++ {
			dst[i] = S(rate*float64(dst[i]) + (1-rate)*float64(src[i]))
		}
	})
}

// SumSquares: Σ x² in float64.
func (b *Backend) SumSquares(x kernel.Buf) float64 {
	defer b.flush()
	if x.Type() == kernel.Float64 {
		return sumSquares(in[float64](b, x))
	}
	return sumSquares(in[float32](b, x))
}

func sumSquares[S real](x []S) (sum float64) {
	for _, v := range x {
		sum += float64(v) * float64(v)
	}
	return sum
}
