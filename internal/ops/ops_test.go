package ops

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"deeploop/internal/graph"
	"deeploop/internal/kernel"
	"deeploop/internal/kernel/ref"
)

// model is a small graph that uses every op, a weight twice, and both
// residual forms, so that sums of gradients and pairs of outputs occur.
type model struct {
	params []*graph.Param
	tokens *TokenLoss
	halt   *HaltLoss
	run    *graph.Runner
	cost   *graph.Node
}

const chunkOfTest = 4 // rows of the head at a time; the last chunk has fewer

var perRound int // gradient accumulators of the qkv weight; 0: one for all rounds

const (
	mB, mT, mP, mD, mN, mV, mF = 2, 5, 2, 8, 2, 7, 6
)

func fill(p *graph.Param, r *rand.Rand, scale float64) *graph.Param {
	for i := range p.Data.Len() {
		p.Data.SetAt(i, r.NormFloat64()*scale)
	}
	return p
}

func newModel(t *testing.T, act kernel.DType, withGrad bool, gain bool, target bool) *model {
	r := rand.New(rand.NewPCG(1, 2))
	be := ref.New(2)
	ms := act.Master()
	b := graph.NewBuilder(be, act)
	seq := mP + mT
	param := func(name string, rows, cols int, scale float64) *graph.Param {
		return fill(graph.NewParam(name, ms, rows, cols), r, scale)
	}
	table, puzzle, pos := param("table", mV, mD, 1), param("puzzle", mB, 13, 1), param("pos", seq, mD, 1)
	qkv, o := param("qkv", 3*mD, mD, .5), param("o", mD, mD, .5)
	gu, down := param("gu", 2*mF, mD, .5), param("down", mD, mF, .5)
	head, qw, qb := param("head", mV, mD, .5), param("qw", 2, mD, .5), param("qb", 1, 2, .5)
	m := &model{params: []*graph.Param{table, puzzle, pos, qkv, o, gu, down, head, qw, qb}}
	var g *graph.Param
	if gain {
		g = param("gain", 1, mD, 1)
		m.params = append(m.params, g)
	}
	if perRound > 0 {
		qkv.PerRound(perRound)
	}
	ids := make([]int32, mB*mT)
	for i := range ids {
		ids[i] = int32(r.IntN(mV))
	}
	m.tokens = NewTokenLoss(kernel.Stablemax, mB*seq, mB)
	for i := range m.tokens.Labels {
		m.tokens.Labels[i] = int32(r.IntN(mV))
		if i%seq < mP || i%4 == 0 {
			m.tokens.Labels[i] = IgnoreLabel
		}
	}
	m.halt = NewHaltLoss(mB)
	shape := kernel.AttentionShape{B: mB, T: seq, N: mN, K: mD / mN}
	x := Embed(b, Embedding{Table: table, Puzzle: puzzle, Pos: pos, IDs: ids, Batch: mB, T: mT, Prefix: mP, Scale: 1.5})
	h := x
	for round := range 2 {
		b.Round = round
		h = Inject(b, h, x)
		u := ResidualNorm(b, h, nil, nil, 1, 1e-5)
		h = ResidualNorm(b, h, Linear(b, Attention(b, Linear(b, u, qkv), shape), o), g, 2, 1e-5)
		h = ResidualNorm(b, h, Linear(b, SwiGLU(b, Linear(b, h, gu)), down), g, 1, 1e-5)
	}
	m.tokens.ChunkRows = chunkOfTest
	var ce *graph.Node
	if withGrad {
		ce = HeadLoss(b, h, head, m.tokens, .25)
	} else {
		ce = HeadLossForward(b, h, head, m.tokens, .25)
	}
	q := QHead(b, h, qw, qb, mB)
	var tgt *graph.Node
	if target {
		tgt = Callback(b, "target", []*graph.Node{q}, mB, 1, nil, func(out kernel.Buf, in []kernel.Buf) {
			for i := range mB {
				out.SetAt(i, .3+.2*float64(i))
			}
		})
	}
	m.cost = Sum(b, ce, QLoss(b, q, tgt, ce, m.tokens, m.halt, .25))
	if withGrad {
		require.NoError(t, b.Gradients(m.cost, m.params))
	}
	var err error
	m.run, err = b.Build(m.cost)
	require.NoError(t, err)
	return m
}

func (m *model) loss(t *testing.T) float64 {
	for _, p := range m.params {
		p.ZeroGrad()
	}
	require.NoError(t, m.run.Run())
	return m.run.Buf(m.cost).At(0)
}

func TestGradient(t *testing.T) {
	for _, gain := range []bool{false, true} {
		for _, target := range []bool{false, true} {
			m := newModel(t, kernel.Float64, true, gain, target)
			m.loss(t)
			for _, p := range m.params {
				grads := append([]float64(nil), p.Grad().Float64s()...)
				step := max(1, p.Data.Len()/7)
				for i := 0; i < p.Data.Len(); i += step {
					const h = 1e-5
					w := p.Data.At(i)
					p.Data.SetAt(i, w+h)
					p.Changed()
					up := m.loss(t)
					p.Data.SetAt(i, w-h)
					p.Changed()
					down := m.loss(t)
					p.Data.SetAt(i, w)
					p.Changed()
					num := (up - down) / (2 * h)
					require.InDelta(t, num, grads[i], 1e-6+1e-5*math.Abs(num), "%s[%d]", p.Name, i)
				}
			}
		}
	}
}

// A second run must give the same gradients, not twice as much, and running
// without a reset must accumulate (problem case T38).
func TestT38RunningTwiceDoesNotDoubleGradients(t *testing.T) {
	m := newModel(t, kernel.Float32, true, true, true)
	m.loss(t)
	var first [][]float32
	for _, p := range m.params {
		first = append(first, append([]float32(nil), p.Grad().Float32s()...))
	}
	m.loss(t)
	for i, p := range m.params {
		require.Equal(t, first[i], p.Grad().Float32s(), p.Name)
	}
	require.NoError(t, m.run.Run()) // no ZeroGrad: micro-batch accumulation
	for i, p := range m.params {
		if p.Name == "puzzle" {
			continue // rows of a batch, overwritten by contract
		}
		for j, g := range p.Grad().Float32s() {
			require.InDelta(t, 2*float64(first[i][j]), float64(g), 1e-6, p.Name)
		}
	}
}

func TestPrecisionsAgree(t *testing.T) {
	exact := newModel(t, kernel.Float64, true, true, true)
	want := exact.loss(t)
	for act, tol := range map[kernel.DType]float64{kernel.Float32: 1e-5, kernel.BFloat16: .05} {
		m := newModel(t, act, true, true, true)
		require.InDelta(t, want, m.loss(t), tol*math.Abs(want), act)
		for i, p := range m.params {
			var num, den float64
			for j := range p.Data.Len() {
				d := p.Grad().At(j) - exact.params[i].Grad().At(j)
				num += d * d
				den += exact.params[i].Grad().At(j) * exact.params[i].Grad().At(j)
			}
			require.Less(t, math.Sqrt(num/den), 3*tol, "%v %s", act, p.Name)
		}
	}
}

// One accumulator per round: their sum is the ordinary gradient, and both
// rounds contribute.
func TestGradientPerRound(t *testing.T) {
	whole := newModel(t, kernel.Float64, true, false, true)
	whole.loss(t)
	perRound = 2
	defer func() { perRound = 0 }()
	split := newModel(t, kernel.Float64, true, false, true)
	split.loss(t)
	w, s := whole.params[3], split.params[3]
	require.Equal(t, "qkv", s.Name)
	require.Len(t, s.Grads, 2)
	for i := range w.Data.Len() {
		a, b := s.Grads[0].Buf.At(i), s.Grads[1].Buf.At(i)
		require.NotZero(t, a)
		require.NotZero(t, b)
		require.InDelta(t, w.Grad().At(i), a+b, 1e-12)
	}
}

func TestMemoryIsShared(t *testing.T) {
	planned, unshared := newModel(t, kernel.Float32, true, true, true).run.PlannedBytes()
	require.Less(t, planned, unshared*6/10)
	planned, unshared = newModel(t, kernel.Float32, false, true, true).run.PlannedBytes()
	require.Less(t, planned, unshared/2)
}
