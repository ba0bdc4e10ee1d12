package ops

import (
	"deeploop/internal/graph"
	"deeploop/internal/kernel"
)

// Activate is y = f(x), element by element, for x[M, F] and f of the given
// kind.
func Activate(b *graph.Builder, x *graph.Node, kind kernel.Activation) *graph.Node {
	m, f := graph.Dims(x)
	be := b.Backend
	return b.Apply(graph.Spec{
		Name: "activate", In: []*graph.Node{x}, Type: b.Act, Rows: m, Cols: f, Over: []int{0},
		Forward: func(y kernel.Buf, in []kernel.Buf) { be.Activate(y, in[0], kind) },
		Diff:    []bool{true},
		Backward: func(_, dy *graph.Node) []*graph.Node {
			return []*graph.Node{b.Apply(graph.Spec{
				Name: "activate.dx", In: []*graph.Node{dy, x}, Type: b.Act, Rows: m, Cols: f, Over: []int{0, 1},
				Forward: func(dx kernel.Buf, in []kernel.Buf) { be.ActivateBackward(dx, in[0], in[1], kind) },
			})}
		},
	})
}
