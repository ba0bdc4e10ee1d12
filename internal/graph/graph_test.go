package graph

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"deeploop/internal/kernel"
	"deeploop/internal/kernel/ref"
)

// mix is out = a·x + b·y + 1 with its gradient; x and y may be the same node.
func mix(b *Builder, x, y *Node, p, q float64) *Node {
	rows, cols := Dims(x)
	scaled := func(dout *Node, f float64) *Node {
		return b.Apply(Spec{Name: "scale", In: []*Node{dout}, Type: b.Act, Rows: rows, Cols: cols,
			Forward: func(out kernel.Buf, in []kernel.Buf) {
				for i := range out.Len() {
					out.SetAt(i, f*in[0].At(i))
				}
			}})
	}
	return b.Apply(Spec{
		Name: "mix", In: []*Node{x, y}, Type: b.Act, Rows: rows, Cols: cols,
		Forward: func(out kernel.Buf, in []kernel.Buf) {
			for i := range out.Len() {
				out.SetAt(i, p*in[0].At(i)+q*in[1].At(i)+1)
			}
		},
		Diff:     []bool{true, true},
		Backward: func(_, dout *Node) []*Node { return []*Node{scaled(dout, p), scaled(dout, q)} },
	})
}

// total is the scalar Σ x.
func total(b *Builder, x *Node) *Node {
	rows, cols := Dims(x)
	return b.Apply(Spec{
		Name: "total", In: []*Node{x}, Type: b.Act.Master(),
		Forward: func(out kernel.Buf, in []kernel.Buf) {
			s := 0.0
			for i := range in[0].Len() {
				s += in[0].At(i)
			}
			out.SetAt(0, s)
		},
		Diff: []bool{true},
		Backward: func(_, dout *Node) []*Node {
			return []*Node{b.Apply(Spec{Name: "spread", In: []*Node{dout}, Type: b.Act, Rows: rows, Cols: cols,
				Forward: func(out kernel.Buf, in []kernel.Buf) {
					for i := range out.Len() {
						out.SetAt(i, in[0].At(0))
					}
				}})}
		},
	})
}

// source puts a parameter into the graph as an activation.
func source(b *Builder, p *Param) *Node {
	g := b.Target(p)
	return b.Apply(Spec{
		Name: "source", In: []*Node{b.Use(p)}, Type: b.Act, Rows: p.Rows, Cols: p.Cols,
		Forward: func(out kernel.Buf, in []kernel.Buf) { b.Backend.Convert(out, in[0]) },
		Diff:    []bool{true},
		Backward: func(_, dout *Node) []*Node {
			return []*Node{b.Token("source.grad", []*Node{dout}, func(in []kernel.Buf) {
				if !g.Touch() {
					clear(g.Buf.Bytes())
				}
				for i := range in[0].Len() {
					g.Buf.SetAt(i, g.Buf.At(i)+in[0].At(i))
				}
			})}
		},
	})
}

// Random graphs: values and gradients computed in shared memory equal those
// computed by hand, on repeated runs, whatever is pinned.
func TestPlannedMemoryGivesRightValues(t *testing.T) {
	for seed := range uint64(30) {
		r := rand.New(rand.NewPCG(seed, 1))
		const rows, cols = 2, 3
		b := NewBuilder(ref.New(1), kernel.Float64)
		params := []*Param{NewParam("p", kernel.Float64, rows, cols), NewParam("q", kernel.Float64, rows, cols)}
		for _, p := range params {
			for i := range p.Data.Len() {
				p.Data.SetAt(i, r.NormFloat64())
			}
		}
		nodes := []*Node{source(b, params[0]), source(b, params[1])}
		type step struct {
			x, y int
			p, q float64
		}
		var steps []step
		for range 4 + r.IntN(20) {
			s := step{r.IntN(len(nodes)), r.IntN(len(nodes)), r.NormFloat64() / 2, r.NormFloat64() / 2}
			if s.x == s.y {
				s.y = (s.x + 1) % len(nodes)
			}
			steps = append(steps, s)
			nodes = append(nodes, mix(b, nodes[s.x], nodes[s.y], s.p, s.q))
		}
		// every value reaches the cost, many along several ways
		sum := nodes[0]
		for _, n := range nodes[1:] {
			sum = mix(b, sum, n, 1, 1)
		}
		cost := total(b, sum)
		require.NoError(t, b.Gradients(cost, params))
		pinned := []*Node{cost}
		var pins []int
		for i := range nodes {
			if r.IntN(4) == 0 {
				pins = append(pins, i)
				pinned = append(pinned, nodes[i])
			}
		}
		run, err := b.Build(pinned...)
		require.NoError(t, err)
		defer run.Close()

		// By hand: values forward, then coefficients backward (all ops are
		// linear, so the gradient is the same for every cell).
		values := make([][]float64, len(nodes))
		for i, p := range params {
			values[i] = append([]float64(nil), p.Data.Float64s()...)
		}
		for i, s := range steps {
			v := make([]float64, rows*cols)
			for j := range v {
				v[j] = s.p*values[s.x][j] + s.q*values[s.y][j] + 1
			}
			values[i+2] = v
		}
		want := float64(rows * cols * (len(nodes) - 1)) // the sums' own +1
		coef := make([]float64, len(nodes))
		for i, v := range values {
			coef[i] = 1
			for _, x := range v {
				want += x
			}
		}
		for i := len(steps) - 1; i >= 0; i-- {
			s := steps[i]
			coef[s.x] += s.p * coef[i+2]
			coef[s.y] += s.q * coef[i+2]
		}
		for range 3 {
			for _, p := range params {
				p.ZeroGrad()
			}
			require.NoError(t, run.Run())
			require.InDelta(t, want, run.Buf(cost).At(0), 1e-9*max(1, want))
			for _, i := range pins {
				require.InDeltaSlice(t, values[i], run.Buf(nodes[i]).Float64s(), 1e-9)
			}
			for i, p := range params {
				for j := range p.Data.Len() {
					require.InDelta(t, coef[i], p.Grad().At(j), 1e-9*max(1, coef[i]*coef[i]), "seed %d", seed)
				}
			}
		}
		planned, unshared := run.PlannedBytes()
		require.Less(t, planned, unshared)
	}
}

// The second output of a pair keeps its memory from the op that writes it to
// its last reader, however late that runs.
func TestPairOutputs(t *testing.T) {
	b := NewBuilder(ref.New(1), kernel.Float64)
	p := NewParam("p", kernel.Float64, 1, 2)
	copy(p.Data.Float64s(), []float64{3, 5})
	x := source(b, p)
	first, second := b.ApplyPair(Spec{Name: "pair", In: []*Node{x}, Type: kernel.Float64, Rows: 1, Cols: 2,
		Second: func(out, second kernel.Buf, in []kernel.Buf) {
			for i := range out.Len() {
				out.SetAt(i, in[0].At(i)+10)
				second.SetAt(i, in[0].At(i)+100)
			}
		}})
	y := first
	for range 5 {
		y = mix(b, y, first, .5, .5)
	}
	z := mix(b, y, second, 1, 1)
	run, err := b.Build(z)
	require.NoError(t, err)
	defer run.Close()
	require.NoError(t, run.Run())
	got := run.Buf(z).Float64s()
	want := func(v float64) float64 {
		y := v + 10
		for range 5 {
			y = .5*y + .5*(v+10) + 1
		}
		return y + v + 100 + 1
	}
	require.InDeltaSlice(t, []float64{want(3), want(5)}, got, 1e-12)
}

// A panic inside a kernel is the Run's error, and the next Run works.
func TestPanicBecomesAnError(t *testing.T) {
	b := NewBuilder(ref.New(1), kernel.Float32)
	fail := true
	x := b.Input("x", kernel.Float32, 1, 1)
	y := b.Apply(Spec{Name: "explode", In: []*Node{x}, Type: kernel.Float32, Rows: 1, Cols: 1,
		Forward: func(out kernel.Buf, in []kernel.Buf) {
			if fail {
				panic("kernel: boom")
			}
			out.SetAt(0, in[0].At(0)+1)
		}})
	run, err := b.Build(y)
	require.NoError(t, err)
	defer run.Close()
	err = run.Run()
	require.ErrorContains(t, err, "run op explode: kernel: boom")
	fail = false
	run.Buf(x).SetAt(0, 4)
	require.NoError(t, run.Run())
	require.Equal(t, 5.0, run.Buf(y).At(0))
}

// A weight that does not reach the cost is an error that says so.
func TestGradientOfAStrangerIsRefused(t *testing.T) {
	b := NewBuilder(ref.New(1), kernel.Float64)
	p, q := NewParam("p", kernel.Float64, 1, 1), NewParam("q", kernel.Float64, 1, 1)
	cost := total(b, source(b, p))
	b.Use(q)
	require.ErrorContains(t, b.Gradients(cost, []*Param{p, q}), "differentiate graph")
}
