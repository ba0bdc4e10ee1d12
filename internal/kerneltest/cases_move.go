package kerneltest

import (
	"math"
	"math/rand/v2"

	"deeploop/internal/kernel"
)

// SwiGLU: an exponential good to a few units in the last place, a quotient and
// products: 1e-6 in float32; bfloat16 rounds once.
func swigluCases() (all []Case) {
	for _, s := range []struct{ m, f int }{{1, 1}, {1, 7}, {3, 16}, {5, 33}, {17, 64}, {40, 171}, {9, 384}, {130, 32}} {
		all = append(all, swiglu(s.m, s.f, false), swiglu(s.m, s.f, true), swigluBackward(s.m, s.f, false), swigluBackward(s.m, s.f, true))
	}
	return all
}

// wild mixes ordinary numbers with ones for which e^-u over- or underflows.
func wild(on bool) func(*rand.Rand) float64 {
	odd := []float64{0, 40, -40, 88, -88, 89, -89, 104, -104, 1e4, -1e4, 1e-30}
	return func(r *rand.Rand) float64 {
		if i := r.IntN(2 * len(odd)); on && i < len(odd) {
			return odd[i]
		}
		return 2 * r.NormFloat64()
	}
}

func swiglu(m, f int, odd bool) Case {
	return Case{
		Op: "SwiGLU", Name: name("%dx%d%s", m, f, flag(odd, "extreme")), Tol: Tolerance{1e-6, 1.0 / 256},
		Tensors: []Tensor{{Name: "gu", Len: 2 * m * f, Fill: wild(odd)}, {Name: "y", Role: Out, Len: m * f}},
		Call:    func(b kernel.Backend, v Values) { b.SwiGLU(v.Buf("y"), v.Buf("gu"), f) },
	}
}

// swigluBackward; the extreme one also writes over its own input.
func swigluBackward(m, f int, odd bool) Case {
	c := Case{
		Op: "SwiGLUBackward", Name: name("%dx%d%s", m, f, flag(odd, "extreme in place")), Tol: Tolerance{1e-6, 1.0 / 256},
		Tensors: []Tensor{{Name: "gu", Len: 2 * m * f, Fill: wild(odd)}, {Name: "dy", Len: m * f, Fill: normal(1)}, {Name: "dgu", Role: Out, Len: 2 * m * f}},
		Call:    func(b kernel.Backend, v Values) { b.SwiGLUBackward(v.Buf("dgu"), v.Buf("dy"), v.Buf("gu"), f) },
	}
	if odd {
		c.Tensors = c.Tensors[:2]
		c.Tensors[0].Role = InOut
		c.Call = func(b kernel.Backend, v Values) { b.SwiGLUBackward(v.Buf("gu"), v.Buf("dy"), v.Buf("gu"), f) }
	}
	return c
}

var lengths = []int{1, 7, 16, 33, 100, 1000, 40001}

func moveCases() (all []Case) {
	for _, n := range lengths {
		all = append(all, add(n, false, ""), add(n, true, ""), convert(n))
	}
	for _, same := range []string{"a", "b", "c"} {
		all = append(all, add(129, true, same))
	}
	return append(all, add(129, false, "a"), sumSquares(1, "", normal(1)), sumSquares(33, "", normal(1)), sumSquares(40001, "", normal(1)),
		sumSquares(1001, "huge", normal(1e30)), sumSquares(300, "Inf", one(math.Inf(-1))), sumSquares(300, "NaN", one(math.NaN())))
}

// one draws x now and then, else ordinary numbers.
func one(x float64) func(*rand.Rand) float64 {
	return func(r *rand.Rand) float64 {
		if r.IntN(100) == 0 {
			return x
		}
		return r.NormFloat64()
	}
}

// add with dst in the memory of the operand named same, if any. One rounding,
// two with three operands in float32.
func add(n int, three bool, same string) Case {
	dst := same
	ts := []Tensor{{Name: "a", Len: n, Fill: normal(1)}, {Name: "b", Len: n, Fill: normal(1)}}
	if three {
		ts = append(ts, Tensor{Name: "c", Len: n, Fill: normal(1)})
	}
	if same == "" {
		dst = "dst"
		ts = append(ts, Tensor{Name: dst, Role: Out, Len: n})
	}
	for i := range ts {
		if ts[i].Name == same {
			ts[i].Role = InOut
		}
	}
	return Case{
		Op: "Add", Name: name("%d%s%s", n, flag(three, "three"), flag(same != "", "dst="+same)), Tol: Tolerance{3e-7, 1.0 / 256}, Tensors: ts,
		Call: func(b kernel.Backend, v Values) { b.Add(v.Buf(dst), v.Buf("a"), v.Buf("b"), v.Buf("c")) },
	}
}

// convert goes from master to activation, back, and sideways; every step is
// exact or one correct rounding, so bits are equal.
func convert(n int) Case {
	return Case{
		Op: "Convert", Name: name("%d", n), OwnType: true,
		Tensors: []Tensor{{Name: "src", Kind: Master, Len: n, Fill: decades(-40, 38)}, {Name: "act", Role: Out, Len: n, Exact: true},
			{Name: "copy", Role: Out, Len: n, Exact: true}, {Name: "back", Kind: Master, Role: Out, Len: n, Exact: true}},
		Call: func(b kernel.Backend, v Values) {
			b.Convert(v.Buf("act"), v.Buf("src"))
			b.Convert(v.Buf("copy"), v.Buf("act"))
			b.Convert(v.Buf("back"), v.Buf("copy"))
		},
	}
}

// sumSquares in float64; 1e-12 leaves room for another order of summation.
func sumSquares(n int, what string, fill func(*rand.Rand) float64) Case {
	return Case{
		Op: "SumSquares", Name: name("%d%s", n, flag(what != "", what)), Tol: Tolerance{1e-12, 1e-12},
		Tensors: []Tensor{{Name: "x", Len: n, Fill: fill}, {Name: "sum", Kind: Wide, Role: Out, Len: 1}},
		Call:    func(b kernel.Backend, v Values) { v.Wide("sum")[0] = b.SumSquares(v.Buf("x")) },
	}
}
