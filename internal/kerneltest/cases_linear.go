package kerneltest

import (
	"math"

	"deeploop/internal/kernel"
)

// Matrix products. float32 sums of K terms: rounding grows as √K·2^-24, under
// 1e-5 here. With bfloat16 activations a backend may round the weight to
// bfloat16 too (tiles take nothing else): 2^-9 a product, independent, so
// about 2^-9/√3 of the result's rms, and 2^-9 once more at the store; the
// largest of thousands of results, weights being unlike, stays below 1/80. LinearDW multiplies
// bfloat16 by bfloat16, exact in float32, and stores float32.
var (
	tolLinear   = Tolerance{1e-5, 1.0 / 80}
	tolLinearDW = Tolerance{2e-5, 2e-5}
)

var linearShapes = []struct{ m, n, k int }{
	{1, 1, 1}, {1, 7, 5}, {3, 2, 64}, {5, 17, 33}, {16, 16, 32}, {31, 48, 64}, {33, 31, 65},
	{64, 96, 128}, {65, 12, 64}, {101, 130, 96}, {7, 2, 512}, {130, 384, 128}, {40, 33, 1027},
}

func linearCases() []Case {
	var all []Case
	for _, s := range linearShapes {
		all = append(all, linear(s.m, s.n, s.k, false), linear(s.m, s.n, s.k, true), linearDX(s.m, s.n, s.k, false),
			linearDX(s.m, s.n, s.k, true), linearDW(s.m, s.n, s.k, false), linearDW(s.m, s.n, s.k, true))
	}
	return append(all, linearStale())
}

func linear(m, n, k int, logits bool) Case {
	kind := Act
	if logits {
		kind = Master
	}
	return Case{
		Op: "Linear", Name: name("%dx%dx%d%s", m, n, k, flag(logits, "logits")), Tol: tolLinear, Flops: 2 * float64(m) * float64(n) * float64(k),
		Tensors: []Tensor{
			{Name: "x", Len: m * k, Fill: normal(1)}, {Name: "w", Kind: Master, Len: n * k, Fill: normal(1 / math.Sqrt(float64(k)))},
			{Name: "y", Kind: kind, Role: Out, Len: m * n}},
		Call: func(b kernel.Backend, v Values) { b.Linear(v.Buf("y"), v.Buf("x"), v.Weight("w", n, k)) },
	}
}

// linearStale writes a weight between two products, as an optimizer does.
func linearStale() Case {
	const m, n, k = 20, 24, 40
	return Case{
		Op: "Linear", Name: "after the weight changed", Tol: tolLinear,
		Tensors: []Tensor{
			{Name: "x", Len: m * k, Fill: normal(1)}, {Name: "w", Kind: Master, Role: InOut, Len: n * k, Fill: normal(.2)},
			{Name: "w2", Kind: Master, Len: n * k, Fill: normal(.2)}, {Name: "dy", Len: m * n, Fill: normal(1)},
			{Name: "y", Role: Out, Len: m * n}, {Name: "dx", Role: Out, Len: m * k}},
		Call: func(b kernel.Backend, v Values) {
			w := v.Weight("w", n, k)
			b.Linear(v.Buf("y"), v.Buf("x"), w)
			b.LinearDX(v.Buf("dx"), v.Buf("dy"), w, false)
			b.Convert(w.Data, v.Buf("w2"))
			w.Version++
			b.Linear(v.Buf("y"), v.Buf("x"), w)
			b.LinearDX(v.Buf("dx"), v.Buf("dy"), w, false)
		},
	}
}

func linearDX(m, n, k int, accumulate bool) Case {
	role := Out
	if accumulate {
		role = InOut
	}
	return Case{
		Op: "LinearDX", Name: name("%dx%dx%d%s", m, n, k, flag(accumulate, "accumulate")), Tol: tolLinear, Flops: 2 * float64(m) * float64(n) * float64(k),
		Tensors: []Tensor{
			{Name: "dy", Len: m * n, Fill: normal(1)}, {Name: "w", Kind: Master, Len: n * k, Fill: normal(1 / math.Sqrt(float64(n)))},
			{Name: "dx", Role: role, Len: m * k, Fill: normal(1)}},
		Call: func(b kernel.Backend, v Values) {
			b.LinearDX(v.Buf("dx"), v.Buf("dy"), v.Weight("w", n, k), accumulate)
		},
	}
}

func linearDW(m, n, k int, accumulate bool) Case {
	role := Out
	if accumulate {
		role = InOut
	}
	return Case{
		Op: "LinearDW", Name: name("%dx%dx%d%s", m, n, k, flag(accumulate, "accumulate")), Tol: tolLinearDW, Flops: 2 * float64(m) * float64(n) * float64(k),
		Tensors: []Tensor{
			{Name: "dy", Len: m * n, Fill: normal(1)}, {Name: "x", Len: m * k, Fill: normal(1 / math.Sqrt(float64(m)))},
			{Name: "dw", Kind: Master, Role: role, Len: n * k, Fill: normal(1)}},
		Call: func(b kernel.Backend, v Values) {
			b.LinearDW(v.Buf("dw"), v.Buf("dy"), v.Buf("x"), n, k, accumulate)
		},
	}
}
