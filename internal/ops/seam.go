package ops

import (
	"deeploop/internal/graph"
	"deeploop/internal/kernel"
)

// Boundary and Seed cut a backward pass into runs of separate graphs: a graph
// that begins with a Boundary and ends in a Seed takes the gradient of its
// output from memory and leaves the gradient of its input there. So a loop's
// rounds can be recomputed and differentiated one at a time (Chen et al. 2016,
// arXiv:1604.06174, section 3), from the last to the first, with gradients of
// parameters that add up over the runs as they would in one graph.

// Boundary is x[M, D], passed on. Backward stores the gradient that arrives in
// grad [M, D], an activation, and stops: nothing below x is differentiated.
// grad may be the memory a Seed of the same graph reads.
func Boundary(b *graph.Builder, x *graph.Node, grad kernel.Buf) *graph.Node {
	m, d := graph.Dims(x)
	mustHold(b, grad, m*d)
	be := b.Backend
	return b.Apply(graph.Spec{
		Name: "boundary", In: []*graph.Node{x, b.Anchor("boundary")}, Type: b.Act, Rows: m, Cols: d, Over: []int{0},
		Forward: func(y kernel.Buf, in []kernel.Buf) { be.Convert(y, in[0]) },
		Diff:    []bool{false, true},
		Backward: func(_, dy *graph.Node) []*graph.Node {
			return []*graph.Node{nil, b.Token("boundary.grad", []*graph.Node{dy}, func(in []kernel.Buf) { be.Convert(grad, in[0]) })}
		},
	})
}

// Seed is a scalar cost whose gradient with respect to y[M, D] is what grad
// [M, D], an activation, holds at the run. It must be a term of the cost
// itself, which is checked. Its value is 0.
func Seed(b *graph.Builder, y *graph.Node, grad kernel.Buf) *graph.Node {
	m, d := graph.Dims(y)
	mustHold(b, grad, m*d)
	be := b.Backend
	return b.Apply(graph.Spec{
		Name: "seed", In: []*graph.Node{y}, Type: b.Act.Master(),
		Forward: func(out kernel.Buf, _ []kernel.Buf) { out.SetAt(0, 0) },
		Diff:    []bool{true},
		Backward: func(_, dout *graph.Node) []*graph.Node {
			return []*graph.Node{b.Apply(graph.Spec{
				Name: "seed.dy", In: []*graph.Node{dout}, Type: b.Act, Rows: m, Cols: d,
				Forward: func(dy kernel.Buf, in []kernel.Buf) {
					if in[0].At(0) != 1 {
						panic("ops: the seed is not a plain term of the cost")
					}
					be.Convert(dy, grad)
				},
			})}
		},
	})
}

func mustHold(b *graph.Builder, grad kernel.Buf, n int) {
	if grad.Len() != n || grad.Type() != b.Act {
		panic("ops: a seam's gradient differs from its activation")
	}
}
