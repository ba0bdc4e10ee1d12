package ops

import (
	"math"
	"math/rand/v2"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"deeploop/internal/graph"
	"deeploop/internal/kernel"
	"deeploop/internal/kernel/pick"
	"deeploop/internal/kernel/ref"
)

const headScale = .25

// head is a head with its loss and what goes in.
type head struct {
	be   kernel.Backend
	act  kernel.DType
	m, d int
	z    kernel.Buf
	w    *graph.Param
	l    *TokenLoss
}

func newHead(be kernel.Backend, act kernel.DType, kind kernel.CrossEntropyKind, groups, m, d, v int) *head {
	r := rand.New(rand.NewPCG(5, uint64(v)))
	h := &head{
		be: be, act: act, m: m, d: d, z: kernel.Alloc(act, m*d),
		w: graph.NewParam("head", act.Master(), v, d), l: NewTokenLoss(kind, m, groups),
	}
	fill(h.w, r, 1/math.Sqrt(float64(d)))
	for i := range h.z.Len() {
		h.z.SetAt(i, r.NormFloat64())
	}
	for i := range h.l.Labels {
		h.l.Labels[i] = r.Int32N(int32(v))
		if i%5 == 0 {
			h.l.Labels[i] = IgnoreLabel
		}
	}
	return h
}

// graph builds the op with gradients; run executes it and returns dz.
func (h *head) graph(t testing.TB) (run func() kernel.Buf) {
	b := graph.NewBuilder(h.be, h.act)
	cost, dz := headLoss(b, b.InputOf("z", h.z, h.m, h.d), h.w, h.l, headScale)
	require.NoError(t, b.Gradients(cost, []*graph.Param{h.w}))
	r, err := b.Build(cost, dz)
	require.NoError(t, err)
	t.Cleanup(func() { r.Close() })
	return func() kernel.Buf {
		require.NoError(t, r.Run())
		require.InDelta(t, headScale*h.l.Sum, r.Buf(cost).At(0), 1e-6*math.Abs(h.l.Sum))
		return r.Buf(dz)
	}
}

// whole is the head by products of whole matrices: what HeadLoss stands for.
type whole struct {
	*head
	logits, dlogits, dz, dw kernel.Buf
	loss, weight            []float64
	pred                    []int32
}

func newWhole(h *head) *whole {
	v := h.w.Rows
	return &whole{
		head: h, logits: kernel.Alloc(h.act.Master(), h.m*v), dlogits: kernel.Alloc(h.act, h.m*v),
		dz: kernel.Alloc(h.act, h.m*h.d), dw: kernel.Alloc(h.act.Master(), v*h.d),
		loss: make([]float64, h.m), weight: make([]float64, h.m), pred: make([]int32, h.m),
	}
}

func (u *whole) run() {
	v, n := u.w.Rows, u.m/u.l.Groups
	u.be.Linear(u.logits, u.z, &u.w.Weight)
	u.be.CrossEntropy(u.loss, u.pred, u.logits, u.l.Labels, v, u.l.Kind)
	for g := range u.l.Groups {
		valid := 0
		for _, y := range u.l.Labels[g*n : (g+1)*n] {
			if y >= 0 {
				valid++
			}
		}
		for r := g * n; r < (g+1)*n; r++ {
			u.weight[r] = headScale / float64(max(valid, 1))
		}
	}
	u.be.CrossEntropyBackward(u.dlogits, u.logits, u.l.Labels, u.weight, v, u.l.Kind)
	u.be.LinearDX(u.dz, u.dlogits, &u.w.Weight, false)
	u.be.LinearDW(u.dw, u.dlogits, u.z, v, u.d, false)
}

// HeadLoss equals the products of whole matrices for any chunk: rows bit for
// bit, the gradient of the weight too with one chunk and else but for the
// order of its sums.
func TestHeadLossEqualsWholeMatrices(t *testing.T) {
	const groups, m, d, v = 3, 39, 8, 11
	for name, be := range backends(t) {
		for _, act := range []kernel.DType{kernel.Float32, kernel.BFloat16} {
			for _, kind := range []kernel.CrossEntropyKind{kernel.Softmax, kernel.Stablemax} {
				for _, chunk := range []int{0, 1, 5, 13, 38, 39, 40} {
					t.Run(name+"/"+act.String()+"/"+strconv.Itoa(int(kind))+"/"+strconv.Itoa(chunk), func(t *testing.T) {
						h := newHead(be, act, kind, groups, m, d, v)
						h.l.ChunkRows = chunk
						want := newWhole(h)
						want.run()
						run := h.graph(t)
						for round := range 2 { // the second run forgets the first
							h.w.ZeroGrad()
							dz := run()
							require.Equal(t, want.loss, h.l.Loss)
							require.Equal(t, want.pred, h.l.Pred)
							require.Equal(t, want.dz.Bytes(), dz.Bytes())
							if chunk == 0 || chunk >= m {
								require.Equal(t, want.dw.Bytes(), h.w.Grad().Bytes(), round)
							}
							for i := range want.dw.Len() {
								require.InDelta(t, want.dw.At(i), h.w.Grad().At(i), 1e-6)
							}
						}

						b := graph.NewBuilder(be, act)
						l := NewTokenLoss(kind, m, groups)
						copy(l.Labels, h.l.Labels)
						l.ChunkRows = chunk
						cost := HeadLossForward(b, b.InputOf("z", h.z, m, d), h.w, l, headScale)
						r, err := b.Build(cost)
						require.NoError(t, err)
						defer r.Close()
						require.NoError(t, r.Run())
						require.Equal(t, h.l.Loss, l.Loss)
						require.Equal(t, h.l.Pred, l.Pred)
						require.Equal(t, []any{h.l.Sum, h.l.Valid, h.l.Right}, []any{l.Sum, l.Valid, l.Right})
					})
				}
			}
		}
	}
}

// The gradients are those of a plain term of the cost; anything else is
// refused, not computed wrong.
func TestHeadLossRefusesAFactor(t *testing.T) {
	h := newHead(ref.New(1), kernel.Float64, kernel.Softmax, 1, 4, 3, 5)
	b := graph.NewBuilder(h.be, h.act)
	loss := HeadLoss(b, b.InputOf("z", h.z, h.m, h.d), h.w, h.l, headScale)
	cost := Sum(b, loss, loss) // its gradient is 2
	require.NoError(t, b.Gradients(cost, []*graph.Param{h.w}))
	r, err := b.Build(cost)
	require.NoError(t, err)
	defer r.Close()
	require.ErrorContains(t, r.Run(), "not a plain term of the cost")
}

// Chunks of small vocabularies are whole batches; those of large ones hold few
// logits, but rows enough for the weight to be worth reading.
func TestChunkRows(t *testing.T) {
	require.GreaterOrEqual(t, chunkRows(6464, 12), 6464)
	require.Equal(t, 256, chunkRows(1024, 50304))
	for _, v := range []int{1, 12, 257, 4096, 50304} {
		for _, m := range []int{1, 31, 256, 257, 1000, 5000, 100_000} {
			rows := chunkRows(m, v)
			require.Positive(t, rows)
			require.LessOrEqual(t, min(m, rows)*v*4, max(1<<20, 256*4*v)+32*4*v)
			require.Less(t, ((m+rows-1)/rows-1)*rows, m, "no empty chunk")
		}
	}
}

// backends opens every kernel of this machine.
func backends(t testing.TB) map[string]kernel.Backend {
	m := map[string]kernel.Backend{}
	for _, name := range pick.Available() {
		c, err := pick.Open(pick.Request{Kernel: name, Threads: 2})
		require.NoError(t, err)
		t.Cleanup(c.Backend.Close)
		m[name] = c.Backend
	}
	return m
}

// BenchmarkHeadLoss times a language model's head with its loss and backward
// pass, by whole matrices and by chunks of rows, and gives the bytes that its
// logits and their gradients take.
func BenchmarkHeadLoss(b *testing.B) {
	const m, d, v = 1024, 768, 50304
	c, err := pick.Open(pick.Request{})
	require.NoError(b, err)
	defer c.Backend.Close()
	h := newHead(c.Backend, c.Precision, kernel.Softmax, 1, m, d, v)
	held := func(b *testing.B, bufs ...kernel.Buf) {
		bytes := 0
		for _, x := range bufs {
			bytes += len(x.Bytes())
		}
		b.ReportMetric(float64(bytes)/1e6, "MB-logits")
	}
	b.Run("whole", func(b *testing.B) {
		u := newWhole(h)
		u.run()
		for b.Loop() {
			u.run()
		}
		held(b, u.logits, u.dlogits)
	})
	for _, chunk := range []int{64, 128, 256, 512, 0} {
		b.Run("chunk"+strconv.Itoa(chunk), func(b *testing.B) {
			h.l.ChunkRows, h.l.logits, h.l.dlogits = chunk, kernel.Buf{}, kernel.Buf{}
			run := h.graph(b)
			run()
			for b.Loop() {
				h.w.ZeroGrad()
				run()
			}
			held(b, h.l.logits, h.l.dlogits)
		})
	}
}
