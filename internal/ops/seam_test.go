package ops

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"deeploop/internal/graph"
	"deeploop/internal/kernel"
	"deeploop/internal/kernel/ref"
)

// seamModel is a loop of three rounds over two blocks, with its parameters.
type seamModel struct {
	act                         kernel.DType
	table, up, down, up2, down2 *graph.Param
	gain, head                  *graph.Param
	ids                         []int32
	loss                        *TokenLoss
}

const seamRows, seamD, seamRounds = 6, 8, 3

func newSeamModel(act kernel.DType) *seamModel {
	r := rand.New(rand.NewPCG(8, 8))
	p := func(name string, rows, cols int) *graph.Param {
		return fill(graph.NewParam(name, act.Master(), rows, cols), r, .5)
	}
	m := &seamModel{
		act: act, table: p("table", 5, seamD), up: p("up", 12, seamD), down: p("down", seamD, 6), up2: p("up2", 12, seamD), down2: p("down2", seamD, 6),
		gain: p("gain", 1, seamD), head: p("head", 5, seamD), ids: make([]int32, seamRows), loss: NewTokenLoss(kernel.Softmax, seamRows, 1),
	}
	for i := range m.ids {
		m.ids[i], m.loss.Labels[i] = int32(r.IntN(5)), int32(r.IntN(5))
	}
	return m
}

func (m *seamModel) params() []*graph.Param {
	return []*graph.Param{m.table, m.up, m.down, m.up2, m.down2, m.gain, m.head}
}

func (m *seamModel) embed(b *graph.Builder) *graph.Node {
	return Embed(b, Embedding{Table: m.table, IDs: m.ids, Batch: 1, T: seamRows, Scale: 1})
}

func (m *seamModel) round(b *graph.Builder, x *graph.Node) *graph.Node {
	x = ResidualNorm(b, x, Linear(b, SwiGLU(b, Linear(b, x, m.up)), m.down), m.gain, 1.5, 1e-5)
	return ResidualNorm(b, x, Linear(b, SwiGLU(b, Linear(b, x, m.up2)), m.down2), nil, 1.5, 1e-5)
}

func (m *seamModel) build(t *testing.T, params []*graph.Param, f func(b *graph.Builder) *graph.Node) func() kernel.Buf {
	b := graph.NewBuilder(ref.New(1), m.act)
	out := f(b)
	if params != nil {
		require.NoError(t, b.Gradients(out, params))
	}
	run, err := b.Build(out)
	require.NoError(t, err)
	t.Cleanup(func() { run.Close() })
	return func() kernel.Buf {
		require.NoError(t, run.Run())
		return run.Buf(out)
	}
}

func bytesOfGradients(params []*graph.Param) (all [][]byte) {
	for _, p := range params {
		all = append(all, append([]byte(nil), p.Grad().Bytes()...))
		p.ZeroGrad()
	}
	return all
}

// Backward in one graph, and round by round with recomputation: equal bits.
func TestSeamsGiveTheFlatGraphsGradients(t *testing.T) {
	for _, act := range []kernel.DType{kernel.Float32, kernel.BFloat16} {
		m := newSeamModel(act)
		m.build(t, m.params(), func(b *graph.Builder) *graph.Node {
			x := m.embed(b)
			for range seamRounds {
				x = m.round(b, x)
			}
			return HeadLoss(b, x, m.head, m.loss, 1)
		})()
		want := bytesOfGradients(m.params())

		grad := kernel.Alloc(act, seamRows*seamD)
		state := make([]kernel.Buf, seamRounds+1)
		for i := range state {
			state[i] = kernel.Alloc(act, seamRows*seamD)
		}
		x := kernel.Alloc(act, seamRows*seamD)
		input := func(b *graph.Builder) *graph.Node { return b.InputOf("x", x, seamRows, seamD) }
		forward := m.build(t, nil, func(b *graph.Builder) *graph.Node { return m.round(b, input(b)) })
		embed := m.build(t, []*graph.Param{m.table}, func(b *graph.Builder) *graph.Node { return Seed(b, m.embed(b), grad) })
		start := m.build(t, nil, m.embed)
		round := m.build(t, []*graph.Param{m.up, m.down, m.up2, m.down2, m.gain}, func(b *graph.Builder) *graph.Node {
			return Seed(b, m.round(b, Boundary(b, input(b), grad)), grad)
		})
		head := m.build(t, []*graph.Param{m.head}, func(b *graph.Builder) *graph.Node {
			return HeadLoss(b, Boundary(b, input(b), grad), m.head, m.loss, 1)
		})
		for range 2 { // and again
			copy(state[0].Bytes(), start().Bytes())
			for r := range seamRounds {
				copy(x.Bytes(), state[r].Bytes())
				copy(state[r+1].Bytes(), forward().Bytes())
			}
			copy(x.Bytes(), state[seamRounds].Bytes())
			head()
			for r := seamRounds - 1; r >= 0; r-- {
				copy(x.Bytes(), state[r].Bytes())
				round()
			}
			embed()
			require.Equal(t, want, bytesOfGradients(m.params()), act)
		}
	}
}
