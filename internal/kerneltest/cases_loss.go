package kerneltest

import (
	"math"
	"math/rand/v2"

	"deeploop/internal/kernel"
)

// loss describes one CrossEntropy case: computed in float64 from the same
// logits, so results agree to 1e-12 (softmax 1e-9: a vector exponential may be
// good to that only); the gradient is rounded to the activations' type.
type loss struct {
	rows, v int
	softmax bool
	extreme bool // logits of +-1e4, 0, -0, 1, 1e-30 among others
	ignored bool // no label at all
}

var lossShapes = []loss{
	{rows: 1, v: 1}, {rows: 1, v: 12}, {rows: 37, v: 12}, {rows: 5, v: 2}, {rows: 40, v: 12, extreme: true}, {rows: 3, v: 12, ignored: true}, {rows: 6, v: 517}, {rows: 130, v: 16},
}

func lossCases() (all []Case) {
	for _, s := range lossShapes {
		for _, s.softmax = range []bool{false, true} {
			all = append(all, s.forward(), s.backward())
		}
	}
	return all
}

func (s loss) String() string {
	kind := "stablemax"
	if s.softmax {
		kind = "softmax"
	}
	return name("%s %dx%d%s%s", kind, s.rows, s.v, flag(s.extreme, "extreme"), flag(s.ignored, "ignored"))
}

func (s loss) kind() kernel.CrossEntropyKind {
	if s.softmax {
		return kernel.Softmax
	}
	return kernel.Stablemax
}

func (s loss) logits() Tensor {
	fill := normal(3)
	if s.extreme {
		odd := []float64{1e4, -1e4, 0, math.Copysign(0, -1), 1, -1, 1e-30, -1e-30, 1, 1}
		fill = func(r *rand.Rand) float64 {
			if i := r.IntN(2 * len(odd)); i < len(odd) {
				return odd[i]
			}
			return r.NormFloat64()
		}
	}
	return Tensor{Name: "logits", Kind: Master, Len: s.rows * s.v, Fill: fill}
}

func (s loss) labels() Tensor {
	return Tensor{Name: "labels", Kind: Int, Len: s.rows, Fill: func(r *rand.Rand) float64 {
		if s.ignored || s.rows > 1 && r.IntN(5) == 0 {
			return -100
		}
		return float64(r.IntN(s.v))
	}}
}

func (s loss) forward() Case {
	return Case{
		Op: "CrossEntropy", Name: s.String(), Tol: Tolerance{1e-9, 1e-9},
		Tensors: []Tensor{s.logits(), s.labels(), {Name: "loss", Kind: Wide, Role: Out, Len: s.rows}, {Name: "pred", Kind: Int, Role: Out, Len: s.rows}},
		Call: func(b kernel.Backend, v Values) {
			b.CrossEntropy(v.Wide("loss"), v.Ints("pred"), v.Buf("logits"), v.Ints("labels"), s.v, s.kind())
		},
	}
}

func (s loss) backward() Case {
	return Case{
		Op: "CrossEntropyBackward", Name: s.String(), Tol: Tolerance{1e-7, 1.0 / 256},
		Tensors: []Tensor{s.logits(), s.labels(), {Name: "scale", Kind: Wide, Len: s.rows, Fill: uniform(.001, .1)}, {Name: "dlogits", Role: Out, Len: s.rows * s.v}},
		Call: func(b kernel.Backend, v Values) {
			b.CrossEntropyBackward(v.Buf("dlogits"), v.Buf("logits"), v.Ints("labels"), v.Wide("scale"), s.v, s.kind())
		},
	}
}
