package ref

import (
	"math"

	"deeploop/internal/kernel"
)

// head holds one (batch, head) pair in contiguous form: q, k rotated, and v.
type head[S real] struct {
	q, k, v []S // [T,K]
	b, n    int
}

// load gathers head n of batch row b from qkv[B,T,3*N*K], rotating q and k.
func (h *head[S]) load(qkv, cos, sin []S, b, n int, s kernel.AttentionShape) {
	h.b, h.n = b, n
	for t := range s.T {
		tok := qkv[(b*s.T+t)*3*s.N*s.K:]
		at := t * s.K
		copy(h.q[at:at+s.K], tok[n*s.K:])
		copy(h.k[at:at+s.K], tok[(s.N+n)*s.K:])
		copy(h.v[at:at+s.K], tok[(2*s.N+n)*s.K:])
	}
	rotate(h.q, cos, sin, s, 1)
	rotate(h.k, cos, sin, s, 1)
}

// rotate turns every row of x[T,K] by its position's angles, backwards for
// sign -1.
func rotate[S real](x, cos, sin []S, s kernel.AttentionShape, sign S) {
	if cos == nil {
		return
	}
	half := s.K / 2
	for t := range s.T {
		a, c := x[t*s.K:t*s.K+half], x[t*s.K+half:(t+1)*s.K]
		for i := range half {
			cs, sn := cos[t*half+i], sign*sin[t*half+i]
			a[i], c[i] = a[i]*cs-c[i]*sn, c[i]*cs+a[i]*sn
		}
	}
}

func newHead[S real](s kernel.AttentionShape) *head[S] {
	n := s.T * s.K
	buf := make([]S, 3*n)
	return &head[S]{q: buf[:n], k: buf[n : 2*n], v: buf[2*n:]}
}

// keys returns how many keys query t sees.
func keys(s kernel.AttentionShape, t int) int {
	if s.Causal {
		return t + 1
	}
	return s.T
}

// Attention: o = softmax(q kᵀ/√K) v per head.
func (b *Backend) Attention(o, lse, qkv kernel.Buf, s kernel.AttentionShape) {
	kernel.CheckAttention(o, lse, qkv, s)
	defer b.flush()
	if qkv.Type() == kernel.Float64 {
		attention(b, out[float64](b, o, false), in[float64](b, lse), in[float64](b, qkv), s)
	} else {
		attention(b, out[float32](b, o, false), in[float32](b, lse), in[float32](b, qkv), s)
	}
}

func attention[S real](b *Backend, o, lse, qkv []S, s kernel.AttentionShape) {
	cos, sin := in[S](b, s.Cos), in[S](b, s.Sin)
	scale := 1 / math.Sqrt(float64(s.K))
	b.split(s.B*s.N, func(lo, hi int) {
		h, scores := newHead[S](s), make([]S, s.T)
		for bn := lo; bn < hi; bn++ {
			h.load(qkv, cos, sin, bn/s.N, bn%s.N, s)
			for t := range s.Asking() {
				n := keys(s, t)
				row := scores[:n]
				dots(row, h.q[t*s.K:(t+1)*s.K], h.k[:n*s.K])
				top, sum := softmax(row, scale)
				y := o[((h.b*s.Asking()+t)*s.N+h.n)*s.K:][:s.K]
				clear(y)
				addRows(y, row, 1, h.v[:n*s.K])
				for i := range y {
					y[i] = S(float64(y[i]) / sum)
				}
				if lse != nil {
					lse[(h.b*s.N+h.n)*s.Asking()+t] = S(top + math.Log(sum))
				}
			}
		}
	})
}

// AttentionBackward: dqkv from do, with the probabilities made again from lse.
func (b *Backend) AttentionBackward(dqkv, do, o, qkv, lse kernel.Buf, s kernel.AttentionShape) {
	kernel.CheckAttentionBackward(dqkv, do, o, qkv, lse, s)
	defer b.flush()
	if qkv.Type() == kernel.Float64 {
		attentionBackward(b, out[float64](b, dqkv, false), in[float64](b, do), in[float64](b, o), in[float64](b, qkv), in[float64](b, lse), s)
	} else {
		attentionBackward(b, out[float32](b, dqkv, false), in[float32](b, do), in[float32](b, o), in[float32](b, qkv), in[float32](b, lse), s)
	}
}

// With p the probabilities of query t and δ = do·o:
//
//	dv_j += p_j do,  ds_j = p_j (do·v_j − δ)/√K,  dq = Σ ds_j k_j,  dk_j += ds_j q.
func attentionBackward[S real](b *Backend, dqkv, do, o, qkv, lse []S, s kernel.AttentionShape) {
	cos, sin := in[S](b, s.Cos), in[S](b, s.Sin)
	scale := 1 / math.Sqrt(float64(s.K))
	b.split(s.B*s.N, func(lo, hi int) {
		h, d := newHead[S](s), newHead[S](s)
		p, dp := make([]S, s.T), make([]S, s.T)
		for bn := lo; bn < hi; bn++ {
			h.load(qkv, cos, sin, bn/s.N, bn%s.N, s)
			clear(d.q)
			clear(d.k)
			clear(d.v)
			for t := range s.T {
				n := keys(s, t)
				q := h.q[t*s.K : (t+1)*s.K]
				at := ((h.b*s.T+t)*s.N + h.n) * s.K
				dy := do[at : at+s.K]
				delta := float64(dot(dy, o[at:at+s.K]))
				dots(p[:n], q, h.k[:n*s.K])
				dots(dp[:n], dy, h.v[:n*s.K])
				l := float64(lse[(h.b*s.N+h.n)*s.T+t])
				for j := range n {
					pj := math.Exp(float64(p[j])*scale - l)
					ds := S(pj * (float64(dp[j]) - delta) * scale)
					axpy(d.v[j*s.K:(j+1)*s.K], S(pj), dy)
					axpy(d.k[j*s.K:(j+1)*s.K], ds, q)
					dp[j] = ds
				}
				addRows(d.q[t*s.K:(t+1)*s.K], dp, 1, h.k[:n*s.K])
			}
			rotate(d.q, cos, sin, s, -1)
			rotate(d.k, cos, sin, s, -1)
			for t := range s.T {
				tok := dqkv[(h.b*s.T+t)*3*s.N*s.K:]
				at := t * s.K
				copy(tok[h.n*s.K:], d.q[at:at+s.K])
				copy(tok[(s.N+h.n)*s.K:], d.k[at:at+s.K])
				copy(tok[(2*s.N+h.n)*s.K:], d.v[at:at+s.K])
			}
		}
	})
}
