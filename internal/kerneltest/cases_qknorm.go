package kerneltest

import "deeploop/internal/kernel"

// qkNorm describes one QKNorm case. Tolerances as for ResidualNorm.
type qkNorm struct {
	B, T, N, K int
	noGain     bool
	in         bool // y is qkv, dqkv is dy
	noDgain    bool
}

func qkNormCases() (all []Case) {
	for _, s := range []qkNorm{
		{B: 1, T: 1, N: 1, K: 2}, {B: 1, T: 3, N: 2, K: 8, in: true}, {B: 2, T: 5, N: 3, K: 17}, {B: 2, T: 33, N: 4, K: 64}, {B: 1, T: 40, N: 2, K: 100, noGain: true},
		{B: 3, T: 50, N: 6, K: 32, in: true}, {B: 1, T: 20, N: 2, K: 128, noDgain: true}, {B: 2, T: 130, N: 1, K: 48, noGain: true, in: true}, {B: 1, T: 9, N: 2, K: 131},
	} {
		all = append(all, s.forward(), s.backward())
	}
	return all
}

func (s qkNorm) String() string {
	return name("B%d T%d N%d K%d%s%s%s", s.B, s.T, s.N, s.K, flag(s.noGain, "no gain"), flag(s.in, "in place"), flag(s.noDgain, "no dgain"))
}

func (s qkNorm) shape() kernel.AttentionShape {
	return kernel.AttentionShape{B: s.B, T: s.T, N: s.N, K: s.K}
}

// inputs are qkv and the gains; rows of qkv.
func (s qkNorm) inputs() (ts []Tensor, rows int) {
	rows = s.B * s.T
	ts = []Tensor{{Name: "qkv", Len: rows * 3 * s.N * s.K, Fill: normal(2)}}
	if !s.noGain {
		ts = append(ts, Tensor{Name: "gq", Kind: Master, Len: s.K, Fill: uniform(.5, 1.5)}, Tensor{Name: "gk", Kind: Master, Len: s.K, Fill: uniform(.5, 1.5)})
	}
	return ts, rows
}

func (s qkNorm) call(y string) func(b kernel.Backend, v Values) {
	return func(b kernel.Backend, v Values) {
		b.QKNorm(v.Buf(y), v.Buf("rstd"), v.Buf("qkv"), v.Buf("gq"), v.Buf("gk"), s.shape(), 1e-5)
	}
}

func (s qkNorm) forward() Case {
	ts, rows := s.inputs()
	y := "y"
	if s.in {
		y, ts[0].Role = "qkv", InOut
	} else {
		ts = append(ts, Tensor{Name: "y", Role: Out, Len: ts[0].Len})
	}
	ts = append(ts, Tensor{Name: "rstd", Kind: Master, Role: Out, Len: rows * 2 * s.N})
	return Case{Op: "QKNorm", Name: s.String(), Tol: Tolerance{2e-6, 1.0 / 256}, Tensors: ts, Call: s.call(y)}
}

func (s qkNorm) backward() Case {
	ts, rows := s.inputs()
	n := ts[0].Len
	ts = append(ts, Tensor{Name: "y", Len: n}, Tensor{Name: "rstd", Kind: Master, Len: rows * 2 * s.N})
	dqkv, dy := "dqkv", Tensor{Name: "dy", Len: n, Fill: normal(1)}
	if s.in {
		dqkv, dy.Role = "dy", InOut
	} else {
		ts = append(ts, Tensor{Name: "dqkv", Role: Out, Len: n})
	}
	ts = append(ts, dy)
	if !s.noGain && !s.noDgain {
		ts = append(ts, Tensor{Name: "dgq", Kind: Master, Role: InOut, Len: s.K, Fill: normal(1)}, Tensor{Name: "dgk", Kind: Master, Role: InOut, Len: s.K, Fill: normal(1)})
	}
	return Case{
		Op: "QKNormBackward", Name: s.String(), Tol: Tolerance{3e-6, 1.0 / 256}, Tensors: ts, Prepare: s.call("y"),
		Call: func(b kernel.Backend, v Values) {
			b.QKNormBackward(v.Buf(dqkv), v.Buf("dgq"), v.Buf("dgk"), v.Buf("dy"), v.Buf("qkv"), v.Buf("rstd"), v.Buf("gq"), v.Buf("gk"), s.shape())
		},
	}
}

func (s qkNorm) gradient() gradient {
	c := s.forward()
	g := gradient{
		name: c.Op + " " + c.Name, out: "y", wrt: []string{"qkv"}, tensors: c.Tensors, forward: c.Call,
		backward: func(b kernel.Backend, v Values) {
			b.QKNormBackward(v.Buf("dqkv"), v.Buf("dgq"), v.Buf("dgk"), v.Buf("dy"), v.Buf("qkv"), v.Buf("rstd"), v.Buf("gq"), v.Buf("gk"), s.shape())
		},
	}
	if !s.noGain {
		g.wrt = append(g.wrt, "gq", "gk")
	}
	return g
}
