package ops

import (
	"deeploop/internal/graph"
	"deeploop/internal/kernel"
)

// Linear is y[M, out] = x[M, in] · Wᵀ with W [out, in], no bias.
func Linear(b *graph.Builder, x *graph.Node, w *graph.Param) *graph.Node {
	m, k := graph.Dims(x)
	if k != w.Cols {
		panic("ops: linear input width differs from the weight's columns")
	}
	wn := b.Use(w)
	be, g := b.Backend, b.Target(w)
	return b.Apply(graph.Spec{
		Name: "linear", In: []*graph.Node{x, wn}, Type: b.Act, Rows: m, Cols: w.Rows,
		Forward: func(y kernel.Buf, in []kernel.Buf) { be.Linear(y, in[0], &w.Weight) },
		Diff:    []bool{true, true},
		Backward: func(_, dy *graph.Node) []*graph.Node {
			dx := b.Apply(graph.Spec{
				Name: "linear.dx", In: []*graph.Node{dy, wn}, Type: graph.TypeOf(x), Rows: m, Cols: k,
				Forward: func(dx kernel.Buf, in []kernel.Buf) { be.LinearDX(dx, in[0], &w.Weight, false) },
				Add:     func(dx kernel.Buf, in []kernel.Buf) { be.LinearDX(dx, in[0], &w.Weight, true) },
			})
			dw := b.Token("linear.dw", []*graph.Node{dy, b.Again(x, dy)}, func(in []kernel.Buf) {
				be.LinearDW(g.Buf, in[0], in[1], w.Rows, w.Cols, g.Touch())
			}, g)
			return []*graph.Node{dx, dw}
		},
	})
}
