package kerneltest

import (
	"math/rand/v2"

	"deeploop/internal/kernel"
)

func updateCases() (all []Case) {
	for _, n := range lengths {
		all = append(all, adam(n, 3, -6, 1), adamW(n, 3, -6, 1, .3, 1e-8), signSGD(n), lerp(n))
	}
	all = append(all, adam(1000, 1, -20, 3), adam(1000, 2, -24, -18), adam(333, 100000, -30, 8))
	all = append(all, adamW(1000, 1, -20, 3, 1, 1e-8), adamW(1000, 2, -24, -12, 1e-6, 1e-8), adamW(333, 100000, -30, 8, 1, 1e-5), adamW(1000, 7, -3, 3, 0, 1e-8))
	return append(all, averaged(adam(19, 3, -6, 1)), averaged(adam(40000, 3, -6, 1)), averaged(adamW(19, 3, -6, 1, 1, 1e-8)), averaged(adamW(40000, 3, -6, 1, 1, 1e-8)))
}

// adam: weights, gradients and moments as after some steps, gradients spread
// over the given decades. Both moments must equal ref's bit for bit (subnormal
// ones have so few bits that the last one shows in the weight); weights are
// within 1e-6, the reference code's own noise.
func adam(n, step int, lo, hi float64) Case {
	h := kernel.AdamHyper{LR: 1e-3, Beta1: .9, Beta2: .95, WeightDecay: .1, Step: step}
	return adamCase("AdamATan2", name("%d step%d decades %v..%v", n, step, lo, hi), n, lo, hi, h, kernel.Backend.AdamATan2)
}

func adamW(n, step int, lo, hi, scale, eps float64) Case {
	h := kernel.AdamHyper{LR: 1e-3, Beta1: .9, Beta2: .95, WeightDecay: .1, Step: step, GradScale: scale, Eps: eps}
	return adamCase("AdamW", name("%d step%d decades %v..%v times %v eps %v", n, step, lo, hi, scale, eps), n, lo, hi, h, kernel.Backend.AdamW)
}

// averaged adds the moving average of the weights.
func averaged(c Case) Case {
	c.Name += " averaged"
	c.Tensors = append(c.Tensors, Tensor{Name: "average", Kind: Master, Role: InOut, Len: c.Tensors[0].Len, Fill: normal(.1)})
	return c
}

func adamCase(op, title string, n int, lo, hi float64, h kernel.AdamHyper, step func(kernel.Backend, kernel.Buf, kernel.Buf, kernel.Buf, kernel.Buf, kernel.AdamHyper)) Case {
	return Case{
		Op: op, Name: title, Tol: Tolerance{5e-7, 5e-7}, OwnType: true,
		Tensors: []Tensor{
			{Name: "w", Kind: Master, Role: InOut, Len: n, Fill: normal(.1)}, {Name: "g", Kind: Master, Len: n, Fill: decades(lo, hi)},
			{Name: "m", Kind: Master, Role: InOut, Len: n, Fill: decades(lo-1, hi-1), Exact: true},
			{Name: "v", Kind: Master, Role: InOut, Len: n, Exact: true, Fill: func(r *rand.Rand) float64 {
				x := decades(lo-1, hi-1)(r)
				return x * x
			}}},
		Call: func(b kernel.Backend, v Values) {
			h := h
			h.Average, h.AverageRate = v.Buf("average"), .999
			step(b, v.Buf("w"), v.Buf("g"), v.Buf("m"), v.Buf("v"), h)
		},
	}
}

// adamSteady is for Speed: no zeros, whose moments would sink into the
// subnormals over the many calls and be slow there.
func adamSteady(c Case) Case {
	for i := range c.Tensors {
		c.Tensors[i].Fill = uniform(1e-3, 1e-2)
	}
	return c
}

// signSGD rounds after each operation: equal bits.
func signSGD(n int) Case {
	return Case{
		Op: "SignSGD", Name: name("%d", n), OwnType: true,
		Tensors: []Tensor{{Name: "w", Kind: Master, Role: InOut, Len: n, Fill: normal(1), Exact: true}, {Name: "g", Kind: Master, Len: n, Fill: decades(-45, 3)}},
		Call:    func(b kernel.Backend, v Values) { b.SignSGD(v.Buf("w"), v.Buf("g"), .01, .1) },
	}
}

func lerp(n int) Case {
	return Case{
		Op: "Lerp", Name: name("%d", n), Tol: Tolerance{3e-7, 3e-7},
		Tensors: []Tensor{{Name: "dst", Kind: Master, Role: InOut, Len: n, Fill: normal(1)}, {Name: "src", Kind: Master, Len: n, Fill: normal(1)}},
		Call:    func(b kernel.Backend, v Values) { b.Lerp(v.Buf("dst"), v.Buf("src"), .999) },
	}
}
