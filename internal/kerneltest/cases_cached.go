package kerneltest

import (
	"math"

	"deeploop/internal/kernel"
)

// cached describes one AttentionCached case; tolerances as for Attention.
type cached struct {
	past, T, ctx, N, K int
	rope               bool
}

func cachedCases() (all []Case) {
	for _, s := range []cached{
		{T: 1, ctx: 1, N: 1, K: 8, rope: true}, {T: 1, ctx: 7, N: 2, K: 16}, {past: 6, T: 1, ctx: 7, N: 3, K: 17}, {past: 100, T: 1, ctx: 128, N: 4, K: 64, rope: true},
		{past: 300, T: 1, ctx: 333, N: 2, K: 128, rope: true}, {T: 37, ctx: 50, N: 2, K: 32, rope: true}, {past: 20, T: 4, ctx: 24, N: 2, K: 64, rope: true},
		{past: 5, T: 33, ctx: 40, N: 3, K: 24, rope: true}, {past: 90, T: 9, ctx: 130, N: 1, K: 100, rope: true}, {past: 3, T: 2, ctx: 6, N: 2, K: 5}, {T: 9, ctx: 9, N: 2, K: 33},
	} {
		all = append(all, s.forward())
	}
	return all
}

func (s cached) forward() Case {
	n := s.N * s.ctx * s.K
	seen := float64(s.past*s.T) + float64(s.T*(s.T+1)/2)
	return Case{
		Op: "AttentionCached", Name: name("past%d T%d of %d N%d K%d%s", s.past, s.T, s.ctx, s.N, s.K, flag(s.rope, "rope")), Tol: Tolerance{1e-5, 1.0 / 40},
		Flops: 4 * seen * float64(s.N*s.K),
		Tensors: []Tensor{
			{Name: "qkv", Len: 3 * s.T * s.N * s.K, Fill: normal(1)}, {Name: "keys", Role: InOut, Len: n, Fill: normal(1)},
			{Name: "values", Role: InOut, Len: n, Fill: normal(1)}, {Name: "o", Role: Out, Len: s.T * s.N * s.K}},
		Call: func(b kernel.Backend, v Values) {
			a := attn{B: 1, T: s.ctx, N: s.N, K: s.K, rope: s.rope}.shape(v) // tables of the whole context
			a.T = s.T
			b.AttentionCached(v.Buf("o"), v.Buf("qkv"), v.Buf("keys"), v.Buf("values"), s.past, a)
		},
	}
}

// decoding is forward for Speed, which then compares the reading of keys and
// values with a copy of as many bytes.
func (s cached) decoding() Case {
	c := s.forward()
	c.Flops = 0
	for i := range c.Tensors {
		if c.Tensors[i].Role == InOut {
			c.Tensors[i].Role = In
		}
	}
	return c
}

// CachedIsAttention feeds a sequence in pieces and returns the largest
// difference between what AttentionCached makes of it and what causal Attention
// makes of the whole.
func CachedIsAttention(b kernel.Backend, t kernel.DType, pieces []int) float64 {
	const n, k, ctx = 3, 24, 96
	total := 0
	for _, p := range pieces {
		total += p
	}
	s := attn{B: 1, T: ctx, N: n, K: k, causal: true, rope: true}
	c := attn{B: 1, T: total, N: n, K: k, causal: true}.forward()
	v := c.values(t, t, 0)
	whole := s.shape(v)
	part := whole
	whole.T = total
	whole.Cos, whole.Sin = part.Cos.Slice(0, total*k/2), part.Sin.Slice(0, total*k/2)
	b.Attention(v.Buf("o"), v.Buf("lse"), v.Buf("qkv"), whole)
	keys, values, o := kernel.Alloc(t, n*ctx*k), kernel.Alloc(t, n*ctx*k), kernel.Alloc(t, total*n*k)
	past := 0
	for _, part.T = range pieces {
		to := past + part.T
		b.AttentionCached(o.Slice(past*n*k, to*n*k), v.Buf("qkv").Slice(past*3*n*k, to*3*n*k), keys, values, past, part)
		past = to
	}
	worst := 0.0
	for i := range o.Len() {
		worst = max(worst, math.Abs(o.At(i)-v.Buf("o").At(i)))
	}
	return worst
}
