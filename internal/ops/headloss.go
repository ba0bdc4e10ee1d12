package ops

import (
	"deeploop/internal/graph"
	"deeploop/internal/kernel"
)

// HeadLoss is the scalar scale · Σ_examples mean over counted positions of
// -log p(label), p from the logits z[M, D] · Wᵀ with W [V, D]
// (architectures.md G.2, G.3), together with its gradients. For a chunk of
// rows at a time, so that logits [M, V] exist nowhere:
//
//	logits  = z[rows] · Wᵀ                  in the master type
//	loss, pred, dlogits of these rows       their weights come from labels alone
//	dz[rows] = dlogits · W
//	dW      += dlogitsᵀ · z[rows]
//
// The gradients are made in the forward pass, while the logits are there, and
// so before the gradient of the scalar is known: the scalar must be a term of
// the cost itself, which is checked. Rows do not depend on the chunk they are
// in; dW adds the chunks' sums in order, and with a single chunk everything
// equals the products of whole matrices bit for bit.
func HeadLoss(b *graph.Builder, z *graph.Node, w *graph.Param, l *TokenLoss, scale float64) *graph.Node {
	loss, _ := headLoss(b, z, w, l, scale)
	return loss
}

func headLoss(b *graph.Builder, z *graph.Node, w *graph.Param, l *TokenLoss, scale float64) (loss, dz *graph.Node) {
	m, d := graph.Dims(z)
	wn := b.Use(w)
	be, g := b.Backend, b.Target(w)
	chunks := newHeadChunks(b, z, w, l, true)
	dz = b.Apply(graph.Spec{
		Name: "headloss", In: []*graph.Node{z, wn}, Type: b.Act, Rows: m, Cols: d, Grads: []*graph.GradBuf{g},
		Forward: func(dz kernel.Buf, in []kernel.Buf) {
			l.weigh(scale)
			chunks.each(in[0], func(lo, hi int, z, logits kernel.Buf) {
				dlogits := l.dlogits.Slice(0, logits.Len())
				be.CrossEntropyBackward(dlogits, logits, l.Labels[lo:hi], l.weight[lo:hi], w.Rows, l.Kind)
				be.LinearDX(dz.Slice(lo*d, hi*d), dlogits, &w.Weight, false)
				be.LinearDW(g.Buf, dlogits, z, w.Rows, d, g.Touch())
			})
			l.count()
		},
	})
	loss = b.Apply(graph.Spec{
		Name: "headloss.sum", In: []*graph.Node{dz, z, wn}, Type: b.Act.Master(),
		Forward: func(out kernel.Buf, _ []kernel.Buf) { out.SetAt(0, scale*l.Sum) },
		Diff:    []bool{false, true, true},
		Backward: func(_, dout *graph.Node) []*graph.Node {
			dw := b.Token("headloss.dw", []*graph.Node{dz, dout}, func(in []kernel.Buf) { // the op above has written it
				if in[1].At(0) != 1 {
					panic("ops: the head's loss is not a plain term of the cost")
				}
			})
			return []*graph.Node{nil, dz, dw}
		},
	})
	return loss, dz
}

// HeadLossForward is HeadLoss without gradients, for graphs that only read.
func HeadLossForward(b *graph.Builder, z *graph.Node, w *graph.Param, l *TokenLoss, scale float64) *graph.Node {
	chunks := newHeadChunks(b, z, w, l, false)
	return b.Apply(graph.Spec{
		Name: "headloss.forward", In: []*graph.Node{z, b.Use(w)}, Type: b.Act.Master(),
		Forward: func(out kernel.Buf, in []kernel.Buf) {
			chunks.each(in[0], func(int, int, kernel.Buf, kernel.Buf) {})
			l.count()
			out.SetAt(0, scale*l.Sum)
		},
	})
}

// headChunks walks over the rows of a head's input.
type headChunks struct {
	be         kernel.Backend
	w          *graph.Param
	l          *TokenLoss
	m, d, rows int
}

func newHeadChunks(b *graph.Builder, z *graph.Node, w *graph.Param, l *TokenLoss, gradient bool) *headChunks {
	m, d := graph.Dims(z)
	if d != w.Cols {
		panic("ops: head input width differs from the weight's columns")
	}
	if m != len(l.Labels) {
		panic("ops: head loss labels differ from the input's rows")
	}
	most := l.ChunkRows
	if most == 0 {
		most = chunkRows(m, w.Rows)
	}
	rows := min(m, most)
	l.logits = atLeast(l.logits, b.Act.Master(), rows*w.Rows)
	if gradient {
		l.dlogits = atLeast(l.dlogits, b.Act, rows*w.Rows)
	}
	return &headChunks{b.Backend, w, l, m, d, rows}
}

// atLeast returns buf, or a new one where it holds fewer than n elements.
func atLeast(buf kernel.Buf, t kernel.DType, n int) kernel.Buf {
	if buf.Len() >= n {
		return buf
	}
	return kernel.Alloc(t, n)
}

// chunkRows chooses how many of m rows have their logits at once. Logits of a
// chunk should stay in the second-level cache, but each chunk reads all of W
// twice and reads and writes all of dW: with fewer than minChunk rows that
// costs more than logits out of cache do (BenchmarkHeadLoss, vocabulary 50,304
// on two cores: 64 rows take 1.32 times as long as whole matrices, 128 rows
// 1.13, 256 rows 1.01). It depends on the shape alone, and chunks of one head
// are about equal.
func chunkRows(m, vocab int) int {
	const (
		cacheBytes = 1 << 20
		minChunk   = 256
		panel      = 32 // rows that products take together
	)
	most := max(cacheBytes/(4*vocab), minChunk)
	chunks := (m + most - 1) / most
	return (m + chunks*panel - 1) / (chunks * panel) * panel
}

// each computes logits, losses and predictions chunk by chunk and calls then
// for rows lo to hi, z and logits being those of the chunk.
func (c *headChunks) each(z kernel.Buf, then func(lo, hi int, z, logits kernel.Buf)) {
	for lo := 0; lo < c.m; lo += c.rows {
		hi := min(lo+c.rows, c.m)
		part := z.Slice(lo*c.d, hi*c.d)
		logits := c.l.logits.Slice(0, (hi-lo)*c.w.Rows)
		c.be.Linear(logits, part, &c.w.Weight)
		c.be.CrossEntropy(c.l.Loss[lo:hi], c.l.Pred[lo:hi], logits, c.l.Labels[lo:hi], c.w.Rows, c.l.Kind)
		then(lo, hi, part, logits)
	}
}
