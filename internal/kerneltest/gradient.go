package kerneltest

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"deeploop/internal/kernel"
)

// gradient is one backward method beside its forward, all in float64. The
// scalar differentiated is L = Σ out·dout with a fixed random dout.
type gradient struct {
	name     string
	tensors  []Tensor // inputs and outputs; gradients are made from wrt
	out      string
	wrt      []string // gradients land in tensors called d<name>
	forward  func(b kernel.Backend, v Values)
	backward func(b kernel.Backend, v Values)
}

// gradientTol bounds |analytic−numeric| relative to |numeric| + rms(numeric).
const gradientTol = 1e-5

// Gradient checks each backward of b, a backend that computes in float64,
// against central differences of its own forward.
func Gradient(t *testing.T, b kernel.Backend) {
	for _, g := range gradients() {
		t.Run(g.name, func(t *testing.T) { g.check(t, b) })
	}
}

func (g *gradient) check(t *testing.T, b kernel.Backend) {
	length := map[string]int{}
	for _, x := range g.tensors {
		length[x.Name] = x.Len
	}
	ts := append([]Tensor{}, g.tensors...)
	ts = append(ts, Tensor{Name: "d" + g.out, Kind: Wide, Len: length[g.out], Fill: normal(1)})
	for _, w := range g.wrt {
		// InOut and zero: those that accumulate start from nothing
		ts = append(ts, Tensor{Name: "d" + w, Kind: Wide, Role: InOut, Len: length[w]})
	}
	c := Case{Op: "Gradient", Name: g.name, Tensors: ts}
	v := c.values(kernel.Float64, kernel.Float64, 0)
	loss := func() (sum float64) {
		g.forward(b, v)
		out, d := v.Wide(g.out), v.Wide("d"+g.out)
		for i := range out {
			sum += out[i] * d[i]
		}
		return sum
	}
	loss()
	g.backward(b, v)
	for _, w := range g.wrt {
		x, analytic := v.Wide(w), append([]float64{}, v.Wide("d"+w)...)
		require.NotEmpty(t, x)
		numeric := make([]float64, len(x))
		for i, old := range x {
			const h = 1e-5
			x[i] = old + h
			up := loss()
			x[i] = old - h
			down := loss()
			x[i] = old
			numeric[i] = (up - down) / (2 * h)
		}
		scale := rms(kernel.F64(numeric))
		require.Greater(t, scale, 0.0, "d%s: the loss does not depend on it", w)
		for i, n := range numeric {
			require.LessOrEqual(t, math.Abs(analytic[i]-n)/(math.Abs(n)+scale), gradientTol, "d%s[%d]: backward gives %v, differences give %v", w, i, analytic[i], n)
		}
	}
}

func gradients() (all []gradient) {
	all = append(all, linearGradient())
	for _, s := range []embed{
		{B: 2, T: 3, prefix: 2, d: 4, puzzle: 7, v: 5, pos: true}, {B: 2, T: 3, prefix: 1, d: 4, puzzle: 4, v: 5}, {B: 3, T: 4, d: 3, v: 4, accumulate: true},
	} {
		all = append(all, s.gradient())
	}
	for _, s := range []attn{
		{B: 2, T: 3, N: 2, K: 4, rope: true}, {B: 1, T: 5, N: 1, K: 6, causal: true, rope: true}, {B: 1, T: 4, N: 2, K: 5}, {B: 1, T: 1, N: 1, K: 4},
	} {
		all = append(all, s.gradient())
	}
	for _, s := range []norm{{rows: 3, d: 5, z: true, alpha: 1.5}, {rows: 2, d: 4, z: true, gain: true, alpha: .8}, {rows: 2, d: 4, gain: true, alpha: 1}} {
		all = append(all, s.gradient())
	}
	for _, s := range []qkNorm{{B: 2, T: 2, N: 2, K: 5}, {B: 1, T: 2, N: 1, K: 4, noGain: true}} {
		all = append(all, s.gradient())
	}
	all = append(all, swigluGradient())
	for _, k := range activations {
		all = append(all, activateGradient(k))
	}
	for _, s := range []loss{{rows: 5, v: 6}, {rows: 5, v: 6, softmax: true}} {
		all = append(all, s.gradient())
	}
	return all
}

func linearGradient() gradient {
	const m, n, k = 3, 4, 5
	return gradient{
		name: "Linear", out: "y", wrt: []string{"x", "w"},
		tensors: []Tensor{{Name: "x", Kind: Wide, Len: m * k, Fill: normal(1)}, {Name: "w", Kind: Wide, Len: n * k, Fill: normal(1)}, {Name: "y", Kind: Wide, Role: Out, Len: m * n}},
		forward: func(b kernel.Backend, v Values) { b.Linear(v.Buf("y"), v.Buf("x"), v.Weight("w", n, k)) },
		backward: func(b kernel.Backend, v Values) {
			b.LinearDX(v.Buf("dx"), v.Buf("dy"), v.Weight("w", n, k), false)
			b.LinearDW(v.Buf("dw"), v.Buf("dy"), v.Buf("x"), n, k, true)
		},
	}
}

func (s embed) gradient() gradient {
	c := s.forward()
	g := gradient{
		name: c.Op + " " + c.Name, out: "y", wrt: []string{"table"}, tensors: c.Tensors, forward: c.Call,
		backward: func(b kernel.Backend, v Values) {
			b.EmbedBackward(v.Buf("dtable"), v.Buf("dpuzzle"), v.Buf("dpos"), v.Buf("dy"), s.args(v), s.accumulate)
		},
	}
	if s.puzzle > 0 {
		g.wrt = append(g.wrt, "puzzle")
	}
	if s.pos {
		g.wrt = append(g.wrt, "pos")
	}
	return g
}

func (s attn) gradient() gradient {
	c := s.forward()
	return gradient{
		name: c.Op + " " + c.Name, out: "o", wrt: []string{"qkv"}, tensors: c.Tensors, forward: c.Call,
		backward: func(b kernel.Backend, v Values) {
			b.AttentionBackward(v.Buf("dqkv"), v.Buf("do"), v.Buf("o"), v.Buf("qkv"), v.Buf("lse"), s.shape(v))
		},
	}
}

func (s norm) gradient() gradient {
	c := s.forward()
	g := gradient{
		name: c.Op + " " + c.Name, out: "y", wrt: []string{"x"}, tensors: c.Tensors, forward: c.Call,
		backward: func(b kernel.Backend, v Values) {
			b.ResidualNormBackward(v.Buf("dx"), v.Buf("dz"), v.Buf("dgain"), v.Buf("dy"), v.Buf("y"), v.Buf("rstd"), v.Buf("x"), v.Buf("z"), v.Buf("gain"), s.alpha, s.d)
		},
	}
	if s.z {
		g.wrt = append(g.wrt, "z")
	}
	if s.gain {
		g.wrt = append(g.wrt, "gain")
	}
	return g
}

func swigluGradient() gradient {
	const m, f = 3, 4
	return gradient{
		name: "SwiGLU", out: "y", wrt: []string{"gu"},
		tensors:  []Tensor{{Name: "gu", Kind: Wide, Len: 2 * m * f, Fill: normal(2)}, {Name: "y", Kind: Wide, Role: Out, Len: m * f}},
		forward:  func(b kernel.Backend, v Values) { b.SwiGLU(v.Buf("y"), v.Buf("gu"), f) },
		backward: func(b kernel.Backend, v Values) { b.SwiGLUBackward(v.Buf("dgu"), v.Buf("dy"), v.Buf("gu"), f) },
	}
}

func activateGradient(kind kernel.Activation) gradient {
	const n = 40
	return gradient{
		name: "Activate " + activationName(kind), out: "y", wrt: []string{"x"},
		tensors:  []Tensor{{Name: "x", Kind: Wide, Len: n, Fill: normal(2)}, {Name: "y", Kind: Wide, Role: Out, Len: n}},
		forward:  func(b kernel.Backend, v Values) { b.Activate(v.Buf("y"), v.Buf("x"), kind) },
		backward: func(b kernel.Backend, v Values) { b.ActivateBackward(v.Buf("dx"), v.Buf("dy"), v.Buf("x"), kind) },
	}
}

// The weights of the rows' losses are the scales of the backward call.
func (s loss) gradient() gradient {
	c := s.forward()
	label := 0
	for i := range c.Tensors {
		if c.Tensors[i].Name == "labels" { // every third row is ignored
			c.Tensors[i].Fill = func(r *rand.Rand) float64 {
				label++
				if label%3 == 0 {
					return -100
				}
				return float64(label % s.v)
			}
		}
	}
	return gradient{
		name: c.Op + " " + c.Name, out: "loss", wrt: []string{"logits"}, tensors: c.Tensors, forward: c.Call,
		backward: func(b kernel.Backend, v Values) {
			b.CrossEntropyBackward(v.Buf("dlogits"), v.Buf("logits"), v.Ints("labels"), v.Wide("dloss"), s.v, s.kind())
		},
	}
}
