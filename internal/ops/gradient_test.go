package ops

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"deeploop/internal/graph"
	"deeploop/internal/kernel"
	"deeploop/internal/kernel/ref"
)

// checkGradients compares the gradients of params that build's scalar gives in
// float64 with central differences.
func checkGradients(t *testing.T, params []*graph.Param, build func(b *graph.Builder) *graph.Node) {
	b := graph.NewBuilder(ref.New(1), kernel.Float64)
	cost := build(b)
	require.NoError(t, b.Gradients(cost, params))
	run, err := b.Build(cost)
	require.NoError(t, err)
	defer run.Close()
	at := func() float64 {
		for _, p := range params {
			p.ZeroGrad()
			p.Changed()
		}
		require.NoError(t, run.Run())
		return run.Buf(cost).At(0)
	}
	at()
	var grads [][]float64
	for _, p := range params {
		grads = append(grads, append([]float64(nil), p.Grad().Float64s()...))
	}
	for i, p := range params {
		for j, g := range grads[i] {
			const h = 1e-5
			w := p.Data.At(j)
			p.Data.SetAt(j, w+h)
			up := at()
			p.Data.SetAt(j, w-h)
			down := at()
			p.Data.SetAt(j, w)
			num := (up - down) / (2 * h)
			require.InDelta(t, num, g, 1e-6+1e-5*max(num, -num), "%s[%d]", p.Name, j)
		}
	}
}

func randomParam(r *rand.Rand, name string, rows, cols int) *graph.Param {
	return fill(graph.NewParam(name, kernel.Float64, rows, cols), r, .7)
}

// randomInput is a leaf of random numbers.
func randomInput(b *graph.Builder, r *rand.Rand, rows, cols int) *graph.Node {
	x := kernel.Alloc(b.Act, rows*cols)
	for i := range x.Len() {
		x.SetAt(i, r.NormFloat64())
	}
	return b.InputOf("x", x, rows, cols)
}

// lossOf is a head's loss of z with random labels.
func lossOf(b *graph.Builder, r *rand.Rand, z *graph.Node, head *graph.Param) *graph.Node {
	m, _ := graph.Dims(z)
	l := NewTokenLoss(kernel.Softmax, m, 1)
	for i := range l.Labels {
		l.Labels[i] = int32(r.IntN(head.Rows))
	}
	return HeadLoss(b, z, head, l, 1)
}

func TestActivateGradient(t *testing.T) {
	for _, kind := range []kernel.Activation{kernel.GELU, kernel.GELUErf, kernel.ReLUSquared} {
		r := rand.New(rand.NewPCG(4, uint64(kind)))
		up, down, head := randomParam(r, "up", 6, 4), randomParam(r, "down", 4, 6), randomParam(r, "head", 3, 4)
		checkGradients(t, []*graph.Param{up, down, head}, func(b *graph.Builder) *graph.Node {
			x := randomInput(b, r, 5, 4)
			return lossOf(b, r, Linear(b, Activate(b, Linear(b, x, up), kind), down), head)
		})
	}
}

func TestQKNormGradient(t *testing.T) {
	s := kernel.AttentionShape{B: 2, T: 3, N: 2, K: 4, Causal: true}
	for _, gains := range []bool{false, true} {
		r := rand.New(rand.NewPCG(5, 1))
		w, head := randomParam(r, "qkv", 24, 5), randomParam(r, "head", 3, 8)
		params := []*graph.Param{w, head}
		var gq, gk *graph.Param
		if gains {
			gq, gk = randomParam(r, "gq", 1, 4), randomParam(r, "gk", 1, 4)
			params = append(params, gq, gk)
		}
		checkGradients(t, params, func(b *graph.Builder) *graph.Node {
			x := randomInput(b, r, 6, 5)
			return lossOf(b, r, Attention(b, QKNorm(b, Linear(b, x, w), gq, gk, s, 1e-5), s), head)
		})
	}
}
