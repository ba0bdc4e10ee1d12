package ref

import (
	"math"

	"deeploop/internal/kernel"
)

// AttentionCached: new positions over cached keys and values, see
// kernel.Backend.
func (b *Backend) AttentionCached(o, qkv, keys, values kernel.Buf, past int, s kernel.AttentionShape) {
	kernel.CheckAttentionCached(o, qkv, keys, values, past, s)
	defer b.flush()
	if qkv.Type() == kernel.Float64 {
		attentionCached(b, out[float64](b, o, false), in[float64](b, qkv), out[float64](b, keys, true), out[float64](b, values, true), past, s)
	} else {
		attentionCached(b, out[float32](b, o, false), in[float32](b, qkv), out[float32](b, keys, true), out[float32](b, values, true), past, s)
	}
}

func attentionCached[S real](b *Backend, o, qkv, keys, values []S, past int, s kernel.AttentionShape) {
	cos, sin := in[S](b, s.Cos), in[S](b, s.Sin)
	ctx, half := len(keys)/(s.N*s.K), s.K/2
	if cos != nil { // the tables' rows of the new positions
		cos, sin = cos[past*half:(past+s.T)*half], sin[past*half:(past+s.T)*half]
	}
	scale := 1 / math.Sqrt(float64(s.K))
	b.split(s.N, func(lo, hi int) {
		h, p := newHead[S](s), make([]S, past+s.T)
		for n := lo; n < hi; n++ {
			h.load(qkv, cos, sin, 0, n, s)
			k, v := keys[n*ctx*s.K:(n+1)*ctx*s.K], values[n*ctx*s.K:(n+1)*ctx*s.K]
			copy(k[past*s.K:], h.k)
			copy(v[past*s.K:], h.v)
			for t := range s.T {
				row := p[:past+t+1]
				dots(row, h.q[t*s.K:(t+1)*s.K], k[:len(row)*s.K])
				y := o[(t*s.N+n)*s.K:][:s.K]
				_, sum := softmax(row, scale)
				clear(y)
				addRows(y, row, 1, v[:len(row)*s.K])
				for i := range y {
					y[i] = S(float64(y[i]) / sum)
				}
			}
		}
	})
}

// softmax turns scores x into e^(scale·x − top), top the largest scale·x, and
// returns top and their sum.
func softmax[S real](row []S, scale float64) (top, sum float64) {
	top = math.Inf(-1)
	for _, x := range row {
		top = max(top, float64(x)*scale)
	}
	for j, x := range row {
		e := math.Exp(float64(x)*scale - top)
		row[j], sum = S(e), sum+e
	}
	return top, sum
}
