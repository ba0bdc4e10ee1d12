package kerneltest

import (
	"math/rand/v2"

	"deeploop/internal/kernel"
)

var activations = []kernel.Activation{kernel.GELU, kernel.GELUErf, kernel.ReLUSquared}

func activationName(k kernel.Activation) string {
	return [...]string{"gelu", "gelu erf", "relu squared"}[k]
}

// Activate: an exponential and a quotient (the exact GELU: a polynomial and an
// exponential of about 3e-7) and products: 1e-6 in float32; bfloat16 rounds
// once.
func activateCases() (all []Case) {
	for _, k := range activations {
		for _, n := range lengths {
			all = append(all, activate(n, k, ""), activateBackward(n, k, ""))
		}
		all = append(all, activate(999, k, "extreme"), activateBackward(999, k, "extreme"),
			activate(133, k, "in place"), activateBackward(133, k, "over x"), activateBackward(133, k, "over dy"))
	}
	return all
}

// far mixes numbers around 0 with ones far out in both tails.
func far(r *rand.Rand) float64 {
	odd := []float64{0, 4, -4, 6, -6, 9, -9, 13, -13, 15.9, -15.9, 16.1, -16.1, 30, -30, 1e4, -1e4, 1e-30, -1e-30}
	if i := r.IntN(2 * len(odd)); i < len(odd) {
		return odd[i]
	}
	return 2 * r.NormFloat64()
}

func activate(n int, kind kernel.Activation, how string) Case {
	c := Case{
		Op: "Activate", Name: name("%s %d%s", activationName(kind), n, flag(how != "", how)), Tol: Tolerance{1e-6, 1.0 / 256},
		Tensors: []Tensor{{Name: "x", Len: n, Fill: normal(2)}, {Name: "y", Role: Out, Len: n}},
		Call:    func(b kernel.Backend, v Values) { b.Activate(v.Buf("y"), v.Buf("x"), kind) },
	}
	switch how {
	case "extreme":
		c.Tensors[0].Fill = far
	case "in place":
		c.Tensors = c.Tensors[:1]
		c.Tensors[0].Role = InOut
		c.Call = func(b kernel.Backend, v Values) { b.Activate(v.Buf("x"), v.Buf("x"), kind) }
	}
	return c
}

func activateBackward(n int, kind kernel.Activation, how string) Case {
	c := Case{
		Op: "ActivateBackward", Name: name("%s %d%s", activationName(kind), n, flag(how != "", how)), Tol: Tolerance{1e-6, 1.0 / 256},
		Tensors: []Tensor{{Name: "x", Len: n, Fill: normal(2)}, {Name: "dy", Len: n, Fill: normal(1)}, {Name: "dx", Role: Out, Len: n}},
	}
	dx := "dx"
	switch how {
	case "extreme":
		c.Tensors[0].Fill = far
	case "over x":
		dx = "x"
		c.Tensors = c.Tensors[:2]
		c.Tensors[0].Role = InOut
	case "over dy":
		dx = "dy"
		c.Tensors = c.Tensors[:2]
		c.Tensors[1].Role = InOut
	}
	c.Call = func(b kernel.Backend, v Values) { b.ActivateBackward(v.Buf(dx), v.Buf("dy"), v.Buf("x"), kind) }
	return c
}
