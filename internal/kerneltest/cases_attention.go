package kerneltest

import (
	"deeploop/internal/kernel"
)

// attn describes one Attention case.
//
// Tolerances: float32 sums of T terms and an exponential, under 1e-5 of the
// rms (2e-5 backward). With bfloat16 activations a backend may round rotated q
// and k, the probabilities and their gradients to bfloat16 before a product,
// as the reference code does with q and k. That is 2^-9 each; rounded q and k
// move a score by some 2^-8 of its terms and so the probability by that
// fraction, for rows with long q or k several times as much (most for heads of
// few elements). The largest of ten thousands of results stays below 0.025,
// and below 0.08 for gradients, where the log-sum-exp of the exact scores no
// longer fits the moved ones.
// All grow with the scores, that is with the square of std.
type attn struct {
	B, T, N, K   int
	causal, rope bool
	std          float64 // of q and k; 0 means 1
	queries      int     // leading positions that ask, one of them without log-sum-exp; 0 means all
}

var attnShapes = []attn{
	{B: 1, T: 1, N: 1, K: 16}, {B: 2, T: 3, N: 1, K: 8, rope: true}, {B: 1, T: 5, N: 3, K: 17}, {B: 2, T: 16, N: 2, K: 32, rope: true, causal: true},
	{B: 1, T: 33, N: 2, K: 24, rope: true}, {B: 3, T: 37, N: 4, K: 16, rope: true}, {B: 2, T: 26, N: 3, K: 33, causal: true},
	{B: 2, T: 101, N: 2, K: 32, rope: true}, {B: 1, T: 101, N: 2, K: 64, rope: true}, {B: 1, T: 65, N: 1, K: 128, causal: true},
	{B: 1, T: 70, N: 1, K: 127}, {B: 1, T: 301, N: 1, K: 64, rope: true, causal: true}, {B: 1, T: 130, N: 1, K: 40, rope: true, std: 3},
	{B: 1, T: 901, N: 1, K: 16, rope: true},
}

func attentionCases() (all []Case) {
	for _, s := range attnShapes {
		all = append(all, s.forward(), s.backward())
	}
	for _, s := range []attn{{B: 2, T: 37, N: 2, K: 16, rope: true, queries: 1}, {B: 1, T: 101, N: 3, K: 33, causal: true, queries: 40}, {B: 3, T: 65, N: 1, K: 32, queries: 65}} {
		all = append(all, s.forward())
	}
	return all
}

func (s attn) String() string {
	return name("B%d T%d N%d K%d%s%s%s%s", s.B, s.T, s.N, s.K, flag(s.rope, "rope"), flag(s.causal, "causal"), flag(s.std > 0, "sharp"), flag(s.queries > 0, name("first%d", s.queries)))
}

func (s attn) shape(v Values) kernel.AttentionShape {
	a := kernel.AttentionShape{B: s.B, T: s.T, N: s.N, K: s.K, Queries: s.queries, Causal: s.causal}
	if s.rope {
		if v.Buf("cos").Absent() {
			cos, sin := kernel.RopeTables(v.Type.Master(), s.T, s.K, 10000)
			v.place("cos", cos)
			v.place("sin", sin)
		}
		a.Cos, a.Sin = v.Buf("cos"), v.Buf("sin")
	}
	return a
}

func (s attn) std1() float64 {
	if s.std > 0 {
		return s.std
	}
	return 1
}

func (s attn) sharp() float64 { return s.std1() * s.std1() }

func (s attn) asking() int { return kernel.AttentionShape{T: s.T, Queries: s.queries}.Asking() }

func (s attn) flops() float64 {
	f := 4 * float64(s.B*s.N*s.K) * float64(s.T) * float64(s.asking())
	if s.causal {
		f /= 2
	}
	return f
}

func (s attn) forward() Case {
	rows := s.B * s.N * s.asking()
	c := Case{
		Op: "Attention", Name: s.String(), Tol: Tolerance{1e-5 * s.sharp(), s.sharp() / 40}, Flops: s.flops(),
		Tensors: []Tensor{
			{Name: "qkv", Len: 3 * s.B * s.T * s.N * s.K, Fill: normal(s.std1())}, {Name: "o", Role: Out, Len: rows * s.K}},
		Call: func(b kernel.Backend, v Values) { b.Attention(v.Buf("o"), v.Buf("lse"), v.Buf("qkv"), s.shape(v)) },
	}
	if s.queries != 1 {
		c.Tensors = append(c.Tensors, Tensor{Name: "lse", Kind: Master, Role: Out, Len: rows})
	}
	return c
}

func (s attn) backward() Case {
	n := s.B * s.T * s.N * s.K
	return Case{
		Op: "AttentionBackward", Name: s.String(), Tol: Tolerance{2e-5 * s.sharp(), s.sharp() / 12}, Flops: 2.5 * s.flops(),
		Tensors: []Tensor{
			{Name: "qkv", Len: 3 * n, Fill: normal(s.std1())}, {Name: "do", Len: n, Fill: normal(1)},
			{Name: "o", Len: n}, {Name: "lse", Kind: Master, Len: s.B * s.N * s.T}, {Name: "dqkv", Role: Out, Len: 3 * n}},
		Prepare: func(b kernel.Backend, v Values) { b.Attention(v.Buf("o"), v.Buf("lse"), v.Buf("qkv"), s.shape(v)) },
		Call: func(b kernel.Backend, v Values) {
			b.AttentionBackward(v.Buf("dqkv"), v.Buf("do"), v.Buf("o"), v.Buf("qkv"), v.Buf("lse"), s.shape(v))
		},
	}
}
