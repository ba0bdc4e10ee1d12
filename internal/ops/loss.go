package ops

import (
	"deeploop/internal/graph"
	"deeploop/internal/kernel"
)

// IgnoreLabel marks positions that take no part in the loss.
const IgnoreLabel = -100

// TokenLoss is the state of the loss of a head. The caller fills Labels before
// a run; the rest is there after the forward. Graphs that never run at the
// same time may share one.
type TokenLoss struct {
	Kind   kernel.CrossEntropyKind
	Groups int     // M rows are Groups examples of M/Groups positions
	Labels []int32 // [M], IgnoreLabel or any negative: not counted
	// ChunkRows is how many rows have their logits at once; 0 leaves it to the
	// op. It is read when an op is added.
	ChunkRows int

	Loss  []float64 // [M] cross entropy of each row, nats
	Pred  []int32   // [M] arg-max
	Valid []int     // [Groups] counted positions
	Right []int     // [Groups] of these, predicted right
	Sum   float64   // Σ_groups Σ_rows Loss/max(Valid,1), before scaling

	weight          []float64  // [M] d cost / d Loss
	logits, dlogits kernel.Buf // of a chunk
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

// weigh gives each row its weight in the cost: scale over the counted
// positions of its group.
func (l *TokenLoss) weigh(scale float64) {
	n := len(l.Labels) / l.Groups
	for g := range l.Groups {
		valid := 0
		for _, y := range l.Labels[g*n : (g+1)*n] {
			if y >= 0 {
				valid++
			}
		}
		for r := g * n; r < (g+1)*n; r++ {
			l.weight[r] = scale / float64(max(valid, 1))
		}
	}
}

// count sums up Loss and Pred by groups.
func (l *TokenLoss) count() {
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
