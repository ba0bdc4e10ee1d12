package ops

import (
	"deeploop/internal/graph"
	"deeploop/internal/kernel"
)

// Inject is a + b, or a + b + c with a third operand: the input injection of a
// module (architectures.md G.1). Every operand's gradient is dy itself.
func Inject(b *graph.Builder, x, y *graph.Node, more ...*graph.Node) *graph.Node {
	if len(more) > 1 {
		panic("ops: inject takes two or three operands")
	}
	in := append([]*graph.Node{x, y}, more...)
	rows, d := graph.Dims(x)
	be := b.Backend
	diff, over := make([]bool, len(in)), make([]int, len(in))
	for i := range diff {
		diff[i], over[i] = true, i
	}
	return b.Apply(graph.Spec{
		Name: "inject", In: in, Type: b.Act, Rows: rows, Cols: d, Over: over,
		Forward: func(out kernel.Buf, in []kernel.Buf) {
			var c kernel.Buf
			if len(in) == 3 {
				c = in[2]
			}
			be.Add(out, in[0], in[1], c)
		},
		Diff: diff,
		Backward: func(_, dy *graph.Node) []*graph.Node {
			grads := make([]*graph.Node, len(in))
			for i := range grads {
				grads[i] = dy
			}
			return grads
		},
	})
}
