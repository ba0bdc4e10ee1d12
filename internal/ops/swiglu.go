package ops

import (
	"deeploop/internal/graph"
	"deeploop/internal/kernel"
)

// SwiGLU is y[M, F] = silu(gate) ⊙ up from the packed gu[M, 2F] = gate|up.
// Backward ops compute y once more rather than keep it: in HRM's blocks that is
// a fifth of what the tape holds.
func SwiGLU(b *graph.Builder, gu *graph.Node) *graph.Node {
	m, w := graph.Dims(gu)
	f := w / 2
	be := b.Backend
	return b.Apply(graph.Spec{
		Name: "swiglu", In: []*graph.Node{gu}, Type: b.Act, Rows: m, Cols: f, Cheap: true,
		Forward: func(y kernel.Buf, in []kernel.Buf) { be.SwiGLU(y, in[0], f) },
		Diff:    []bool{true},
		Backward: func(_, dy *graph.Node) []*graph.Node {
			return []*graph.Node{b.Apply(graph.Spec{
				Name: "swiglu.dgu", In: []*graph.Node{dy, gu}, Type: b.Act, Rows: m, Cols: w, Over: []int{1},
				Forward: func(dgu kernel.Buf, in []kernel.Buf) { be.SwiGLUBackward(dgu, in[0], in[1], f) },
			})}
		},
	})
}
