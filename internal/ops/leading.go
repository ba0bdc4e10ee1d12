package ops

import (
	"deeploop/internal/graph"
	"deeploop/internal/kernel"
)

// Leading is the first n positions of each row of the batch: y[B*n, D] of
// x[B*T, D], without gradient.
func Leading(b *graph.Builder, x *graph.Node, batch, n int) *graph.Node {
	m, d := graph.Dims(x)
	return b.Apply(graph.Spec{
		Name: "leading", In: []*graph.Node{x}, Type: b.Act, Rows: batch * n, Cols: d,
		Forward: func(y kernel.Buf, in []kernel.Buf) { leading(y, in[0], batch, n*d, m/batch*d) },
	})
}

// leading copies the first n of every t elements.
func leading(y, x kernel.Buf, batch, n, t int) {
	for i := range batch {
		copy(y.Slice(i*n, (i+1)*n).Bytes(), x.Slice(i*t, i*t+n).Bytes())
	}
}
