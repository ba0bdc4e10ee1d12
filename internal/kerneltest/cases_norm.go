package kerneltest

import "deeploop/internal/kernel"

// norm describes one ResidualNorm case. float32: a sum of D squares and a few
// products, 2e-6; bfloat16: one rounding at the store. Without gain the
// backward reads the rounded y, the same for ref and the backend under test.
type norm struct {
	rows, d int
	z, gain bool
	alpha   float64
	// How a backward call may share memory: dx is dy, dz is dy, no dz at all.
	dxIsDy, dzIsDy, noDz bool
	noDgain              bool
}

var normShapes = []norm{
	{rows: 1, d: 2, alpha: 1}, {rows: 3, d: 5, z: true, alpha: 1.5}, {rows: 1, d: 64, gain: true, alpha: 1, noDz: true}, {rows: 7, d: 33, z: true, gain: true, alpha: 2.5},
	{rows: 65, d: 96, z: true, alpha: 1, dxIsDy: true}, {rows: 130, d: 128, z: true, alpha: 1.3, dzIsDy: true}, {rows: 33, d: 127, z: true, gain: true, alpha: 1, dxIsDy: true},
	{rows: 20, d: 512, z: true, alpha: .7, noDz: true}, {rows: 257, d: 48, gain: true, alpha: 1, dxIsDy: true, noDz: true, noDgain: true},
	{rows: 66, d: 40, z: true, gain: true, alpha: 1.1, dzIsDy: true},
}

func normCases() (all []Case) {
	for _, s := range normShapes {
		all = append(all, s.forward(), s.backward())
	}
	return append(all, norm{rows: 4, d: 32, alpha: 1e-9}.forward(), norm{rows: 3, d: 1, alpha: 1}.forward()) // far below eps; one column
}

func (s norm) String() string {
	return name("%dx%d alpha%v%s%s%s%s%s%s", s.rows, s.d, s.alpha, flag(s.z, "z"), flag(s.gain, "gain"), flag(s.dxIsDy, "dx=dy"), flag(s.dzIsDy, "dz=dy"),
		flag(s.noDz, "no dz"), flag(s.noDgain, "no dgain"))
}

func (s norm) sizes() (n, z, gain int) {
	n = s.rows * s.d
	if s.z {
		z = n
	}
	if s.gain {
		gain = s.d
	}
	return n, z, gain
}

func (s norm) forward() Case {
	n, z, gain := s.sizes()
	return Case{
		Op: "ResidualNorm", Name: s.String(), Tol: Tolerance{2e-6, 1.0 / 256},
		Tensors: []Tensor{
			{Name: "x", Len: n, Fill: normal(2)}, {Name: "z", Len: z, Fill: normal(2)}, {Name: "gain", Kind: Master, Len: gain, Fill: uniform(.5, 1.5)},
			{Name: "y", Role: Out, Len: n}, {Name: "rstd", Kind: Master, Role: Out, Len: s.rows}},
		Call: s.call,
	}
}

func (s norm) call(b kernel.Backend, v Values) {
	b.ResidualNorm(v.Buf("y"), v.Buf("rstd"), v.Buf("x"), v.Buf("z"), v.Buf("gain"), s.alpha, 1e-5, s.d)
}

func (s norm) backward() Case {
	n, z, gain := s.sizes()
	ts := []Tensor{
		{Name: "x", Len: n, Fill: normal(2)}, {Name: "z", Len: z, Fill: normal(2)}, {Name: "gain", Kind: Master, Len: gain, Fill: uniform(.5, 1.5)},
		{Name: "y", Len: n}, {Name: "rstd", Kind: Master, Len: s.rows},
	}
	dy, dx, dz := "dy", "dx", "dz"
	switch {
	case s.dxIsDy:
		dx = dy
	case s.dzIsDy:
		dz = dy
	}
	if s.noDz {
		dz = ""
	}
	role := In
	if dx == dy || dz == dy {
		role = InOut
	}
	ts = append(ts, Tensor{Name: dy, Role: role, Len: n, Fill: normal(1)})
	if dx != dy {
		ts = append(ts, Tensor{Name: dx, Role: Out, Len: n})
	}
	if dz == "dz" {
		ts = append(ts, Tensor{Name: dz, Role: Out, Len: n})
	}
	if !s.noDgain && s.gain {
		ts = append(ts, Tensor{Name: "dgain", Kind: Master, Role: InOut, Len: gain, Fill: normal(1)})
	}
	return Case{
		Op: "ResidualNormBackward", Name: s.String(), Tol: Tolerance{3e-6, 1.0 / 256}, Tensors: ts, Prepare: s.call,
		Call: func(b kernel.Backend, v Values) {
			x, zz, y := v.Buf("x"), v.Buf("z"), v.Buf("y")
			if s.gain { // the contract lets the unused ones be absent
				y = kernel.Buf{}
			} else {
				x, zz = kernel.Buf{}, kernel.Buf{}
			}
			b.ResidualNormBackward(v.Buf(dx), v.Buf(dz), v.Buf("dgain"), v.Buf(dy), y, v.Buf("rstd"), x, zz, v.Buf("gain"), s.alpha, s.d)
		},
	}
}
