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
			}, g)}
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
		b.FreshGradients = seed%2 == 1
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

// double is out = 2·x, which can add to its destination, and lies over x where
// x dies.
func double(b *Builder, x *Node) *Node {
	rows, cols := Dims(x)
	run := func(old float64) func(out kernel.Buf, in []kernel.Buf) {
		return func(out kernel.Buf, in []kernel.Buf) {
			for i := range out.Len() {
				out.SetAt(i, old*out.At(i)+2*in[0].At(i))
			}
		}
	}
	return b.Apply(Spec{
		Name: "double", In: []*Node{x}, Type: b.Act, Rows: rows, Cols: cols, Forward: run(0),
		Diff: []bool{true},
		Backward: func(_, dout *Node) []*Node {
			return []*Node{b.Apply(Spec{Name: "double.dx", In: []*Node{dout}, Type: b.Act, Rows: rows, Cols: cols,
				Forward: run(0), Add: run(1), Over: []int{0}})}
		},
	})
}

// A residual y = x + 2x per layer: the gradient's sum is computed by the op of
// one term, in the memory of the other.
func TestSumsOfGradientsAreFoldedIntoTheirTerms(t *testing.T) {
	b := NewBuilder(ref.New(1), kernel.Float64)
	p := NewParam("p", kernel.Float64, 1, 3)
	copy(p.Data.Float64s(), []float64{1, 2, 3})
	x := source(b, p)
	const layers = 4
	for range layers {
		x = mix(b, x, double(b, x), 1, 1)
	}
	cost := total(b, x)
	require.NoError(t, b.Gradients(cost, []*Param{p}))
	run, err := b.Build(cost)
	require.NoError(t, err)
	defer run.Close()
	require.Len(t, run.plan.sums, layers)
	require.Len(t, run.plan.folded, layers)
	for range 2 {
		p.ZeroGrad()
		require.NoError(t, run.Run())
		require.Equal(t, []float64{81, 81, 81}, p.Grad().Float64s())
	}
}

// A term is not added to memory that somebody still reads: here the other term
// is pinned.
func TestPinnedTermKeepsItsValue(t *testing.T) {
	b := NewBuilder(ref.New(1), kernel.Float64)
	p := NewParam("p", kernel.Float64, 1, 1)
	p.Data.SetAt(0, 1)
	x := source(b, p)
	cost := total(b, mix(b, x, double(b, x), 1, 1))
	require.NoError(t, b.Gradients(cost, []*Param{p}))
	order, err := executionOrder(b.g)
	require.NoError(t, err)
	pinned := []*Node{cost}
	for _, n := range order {
		if o, ok := n.Op().(*op); ok && o.Name == "scale" {
			pinned = append(pinned, n)
		}
	}
	require.Len(t, pinned, 3)
	run, err := b.Build(pinned...)
	require.NoError(t, err)
	defer run.Close()
	require.Empty(t, run.plan.folded)
	require.NoError(t, run.Run())
	require.Equal(t, 3.0, p.Grad().At(0))
	for _, n := range pinned[1:] {
		require.Equal(t, 1.0, run.Buf(n).At(0))
	}
}

// A state is replaced in place, or read here and written there, as bound; what
// would overwrite an input before it is read is refused.
func TestPlacedOutputs(t *testing.T) {
	one := func(v float64) kernel.Buf { return kernel.F64([]float64{v}) }
	state, other := one(5), one(7)
	b := NewBuilder(ref.New(1), kernel.Float64)
	in := b.InputOf("state", state, 1, 1)
	u := mix(b, in, b.InputOf("other", other, 1, 1), 1, 1)
	out := mix(b, u, u, 1, 0)
	b.Place(out, state)
	run, err := b.Build()
	require.NoError(t, err)
	defer run.Close()
	require.NoError(t, run.Run())
	require.Equal(t, 14.0, state.At(0))
	to := one(0)
	run.Bind(out, to)
	require.NoError(t, run.Run())
	require.Equal(t, 23.0, to.At(0))
	require.Equal(t, 14.0, state.At(0))
	run.Bind(in, to)
	require.NoError(t, run.Run())
	require.Equal(t, 32.0, run.Buf(out).At(0))
	require.PanicsWithValue(t, "graph: 2 elements of fp64 do not fit state", func() { run.Bind(in, kernel.Alloc(kernel.Float64, 2)) })
	require.Panics(t, func() { run.Bind(u, one(0)) })

	b = NewBuilder(ref.New(1), kernel.Float64)
	in = b.InputOf("state", state, 1, 1)
	first := mix(b, in, in, 1, 1)
	last := mix(b, first, in, 1, 1)
	b.Place(first, state)
	require.PanicsWithValue(t, "graph: mix#1 would overwrite state before it is read", func() { _, _ = b.Build(last) })
}

// Graphs of one arena work in the memory of the graph that lends it to them,
// inside that graph's run and outside, and spoil none of its values.
func TestArenaIsLent(t *testing.T) {
	const n = 64
	var arena Arena
	x := kernel.Alloc(kernel.Float64, n)
	inner := NewBuilder(ref.New(1), kernel.Float64)
	inner.Share(&arena)
	in := inner.InputOf("x", x, 1, n)
	y := mix(inner, double(inner, in), double(inner, double(inner, in)), 1, 1) // 6x + 1
	small, err := inner.Build(y)
	require.NoError(t, err)
	defer small.Close()

	b := NewBuilder(ref.New(1), kernel.Float64)
	p := NewParam("p", kernel.Float64, 1, n)
	for i := range n {
		p.Data.SetAt(i, float64(i))
	}
	h := source(b, p)
	g := double(b, h)
	called := b.Apply(Spec{Name: "call", In: []*Node{g}, Type: kernel.Float64, Rows: 1, Cols: n, Lends: &arena,
		Forward: func(out kernel.Buf, in []kernel.Buf) {
			copy(x.Bytes(), in[0].Bytes())
			if err := small.Run(); err != nil {
				panic(err)
			}
			copy(out.Bytes(), small.Buf(y).Bytes())
		}})
	z := mix(b, mix(b, called, h, 1, 1), g, 1, 1) // 12i+1 + i + 1 + 2i + 1
	big, err := b.Build(z)
	require.NoError(t, err)
	defer big.Close()
	for range 2 {
		require.NoError(t, big.Run())
		for i := range n {
			require.Equal(t, 15*float64(i)+3, big.Buf(z).At(i))
		}
		x.SetAt(3, 10)
		require.NoError(t, small.Run())
		require.Equal(t, 61.0, small.Buf(y).At(3))
	}
	require.True(t, arena.lent)
}

// chain is y = 2·(… 2·(p0 + p1) + p2 …) with the gradient of every p, all of one
// size, and no reader of the forward values.
func chain(t *testing.T, fresh bool, arena *Arena, params []*Param) *Runner {
	b := NewBuilder(ref.New(1), kernel.Float64)
	b.FreshGradients = fresh
	if arena != nil {
		b.Share(arena)
	}
	y := source(b, params[0])
	for _, p := range params[1:] {
		y = double(b, mix(b, y, source(b, p), 1, 1))
	}
	cost := total(b, y)
	require.NoError(t, b.Gradients(cost, params))
	run, err := b.Build(cost)
	require.NoError(t, err)
	t.Cleanup(func() { run.Close() })
	return run
}

func newParams(n, cols int) []*Param {
	var ps []*Param
	for range n {
		ps = append(ps, NewParam("p", kernel.Float64, 1, cols))
	}
	return ps
}

// requireChain compares gradients with those of chain, times so many runs.
func requireChain(t *testing.T, params []*Param, runs float64) {
	t.Helper()
	want := runs
	for i := len(params) - 1; i >= 0; i-- {
		if i > 0 {
			want *= 2
		}
		for j := range params[i].Grad().Len() {
			require.Equal(t, want, params[i].Grad().At(j), "parameter %d", i)
		}
	}
}

// Fresh gradients lie in the arena, where the graph builds them at once, so
// that an optimizer can keep where they are. Each run has its own, whether or
// not somebody empties them.
func TestFreshGradients(t *testing.T) {
	const n, cols = 5, 32
	params := newParams(n, cols)
	for _, p := range params {
		require.True(t, p.Grad().Absent(), "no memory before there is a graph with gradient")
	}
	run := chain(t, true, nil, params)
	require.Len(t, run.plan.grads, n)
	var kept []kernel.Buf
	for _, p := range params {
		kept = append(kept, p.Grad())
		require.Equal(t, cols, p.Grad().Len())
	}
	for range 3 {
		require.NoError(t, run.Run())
		requireChain(t, params, 1)
		for i, p := range params {
			require.Equal(t, kept[i].Ptr(), p.Grad().Ptr())
		}
	}
	own := newParams(n, cols)
	other := chain(t, false, nil, own)
	require.Empty(t, other.plan.grads)
	planned, _ := run.PlannedBytes()
	without, _ := other.PlannedBytes()
	require.Less(t, planned, without+n*cols*8, "gradients take the place of what has died")

	for i := range 3 { // those with memory of their own add up
		require.NoError(t, other.Run())
		requireChain(t, own, float64(i+1))
	}
}

// Two graphs with fresh gradients of the same parameters: the gradients are
// those of the graph that ran last. Fresh ones cannot add up elsewhere.
func TestFreshGradientsOfTwoGraphs(t *testing.T) {
	params := newParams(3, 4)
	first := chain(t, true, nil, params)
	at := params[0].Grad()
	second := chain(t, true, nil, params)
	require.NotEqual(t, at.Ptr(), params[0].Grad().Ptr())
	require.NoError(t, second.Run())
	requireChain(t, params, 1)
	require.NoError(t, first.Run())
	requireChain(t, params, 1)
	require.Equal(t, at.Ptr(), params[0].Grad().Ptr())
	require.PanicsWithValue(t, "graph: a gradient that is fresh in every run of one graph cannot accumulate in another",
		func() { chain(t, false, nil, params) })
}

// Memory that holds gradients does not move: a larger graph comes too late.
func TestArenaWithGradientsDoesNotMove(t *testing.T) {
	var arena Arena
	chain(t, true, &arena, newParams(3, 4))
	chain(t, true, &arena, newParams(2, 4)) // smaller
	require.PanicsWithValue(t, "graph: a graph joined an arena after gradients were laid there",
		func() { chain(t, true, &arena, newParams(3, 400)) })
}
