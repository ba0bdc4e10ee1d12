package ops

import (
	"deeploop/internal/graph"
	"deeploop/internal/kernel"
)

// Head is logits[M, V] = z[M, D] · Wᵀ in the master type.
func Head(b *graph.Builder, z *graph.Node, w *graph.Param) *graph.Node {
	return linear(b, z, w, b.Act.Master())
}

// IgnoreLabel marks positions that take no part in the loss.
const IgnoreLabel = -100

// TokenLoss is the state of one cross-entropy op. The caller fills Labels
// before a run; the rest is there after the forward.
type TokenLoss struct {
	Kind   kernel.CrossEntropyKind
	Groups int     // M rows are Groups examples of M/Groups positions
	Labels []int32 // [M], IgnoreLabel or any negative: not counted

	Loss  []float64 // [M] cross entropy of each row, nats
	Pred  []int32   // [M] arg-max
	Valid []int     // [Groups] counted positions
	Right []int     // [Groups] of these, predicted right
	Sum   float64   // Σ_groups Σ_rows Loss/max(Valid,1), before scaling

	weight []float64
}

// NewTokenLoss allocates the state for m rows in the given number of groups.
func NewTokenLoss(kind kernel.CrossEntropyKind, m, groups int) *TokenLoss {
	return &TokenLoss{
		Kind: kind, Groups: groups, Labels: make([]int32, m),
		Loss: make([]float64, m), Pred: make([]int32, m),
		Valid: make([]int, groups), Right: make([]int, groups), weight: make([]float64, m),
	}
}

// Exact reports whether every counted position of group g is right (also when
// none is counted, as in the reference).
func (l *TokenLoss) Exact(g int) bool { return l.Right[g] == l.Valid[g] }

func (l *TokenLoss) forward(be kernel.Backend, logits kernel.Buf, v int) {
	be.CrossEntropy(l.Loss, l.Pred, logits, l.Labels, v, l.Kind)
	n := len(l.Labels) / l.Groups
	l.Sum = 0
	for g := range l.Groups {
		valid, right, sum := 0, 0, 0.0
		for r := g * n; r < (g+1)*n; r++ {
			if l.Labels[r] >= 0 {
				valid++
				if l.Pred[r] == l.Labels[r] {
					right++
				}
			}
			sum += l.Loss[r]
		}
		l.Valid[g], l.Right[g] = valid, right
		l.Sum += sum / float64(max(valid, 1))
	}
}

// CrossEntropy is the scalar scale · Σ_examples mean over counted positions of
// -log p(label) (architectures.md G.2, G.3).
func CrossEntropy(b *graph.Builder, logits *graph.Node, l *TokenLoss, scale float64) *graph.Node {
	m, v := graph.Dims(logits)
	if m != len(l.Labels) {
		panic("ops: cross entropy labels differ from the logits' rows")
	}
	be := b.Backend
	return b.Apply(graph.Spec{
		Name: "crossentropy", In: []*graph.Node{logits}, Type: b.Act.Master(),
		Forward: func(out kernel.Buf, in []kernel.Buf) {
			l.forward(be, in[0], v)
			out.SetAt(0, scale*l.Sum)
		},
		Diff: []bool{true},
		Backward: func(_, dout *graph.Node) []*graph.Node {
			return []*graph.Node{b.Apply(graph.Spec{
				Name: "crossentropy.dlogits", In: []*graph.Node{logits, dout}, Type: b.Act, Rows: m, Cols: v,
				Forward: func(dlogits kernel.Buf, in []kernel.Buf) {
					n := m / l.Groups
					for r := range l.weight {
						l.weight[r] = scale * in[1].At(0) / float64(max(l.Valid[r/n], 1))
					}
					be.CrossEntropyBackward(dlogits, in[0], l.Labels, l.weight, v, l.Kind)
				},
			})}
		},
	})
}

// Sum adds scalars.
func Sum(b *graph.Builder, terms ...*graph.Node) *graph.Node {
	diff := make([]bool, len(terms))
	for i := range diff {
		diff[i] = true
	}
	return b.Apply(graph.Spec{
		Name: "sum", In: terms, Type: b.Act.Master(),
		Forward: func(out kernel.Buf, in []kernel.Buf) {
			s := 0.0
			for _, x := range in {
				s += x.At(0)
			}
			out.SetAt(0, s)
		},
		Diff: diff,
		Backward: func(_, dout *graph.Node) []*graph.Node {
			ds := make([]*graph.Node, len(terms))
			for i := range ds {
				ds[i] = dout
			}
			return ds
		},
	})
}
