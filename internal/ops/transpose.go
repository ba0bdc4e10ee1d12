package ops

import (
	"sync"

	"deeploop/internal/graph"
	"deeploop/internal/kernel"
)

// Transpose swaps positions and features of each row of the batch: y[B*D, T] of
// x[B*T, D]. Backward ops compute y once more rather than keep it.
func Transpose(b *graph.Builder, x *graph.Node, batch int) *graph.Node {
	m, d := graph.Dims(x)
	t := m / batch
	threads := b.Backend.Threads()
	return b.Apply(graph.Spec{
		Name: "transpose", In: []*graph.Node{x}, Type: b.Act, Rows: batch * d, Cols: t, Cheap: true,
		Forward:  func(y kernel.Buf, in []kernel.Buf) { transpose(y, in[0], batch, t, d, threads) },
		Diff:     []bool{true},
		Backward: func(_, dy *graph.Node) []*graph.Node { return []*graph.Node{Transpose(b, dy, batch)} },
	})
}

// transpose writes each of batch matrices [rows, cols] as [cols, rows].
func transpose(y, x kernel.Buf, batch, rows, cols, threads int) {
	part := func(lo, hi int) {
		for i := lo; i < hi; i++ {
			at, end := i*rows*cols, (i+1)*rows*cols
			switch x.Type() {
			case kernel.Float32:
				transposeOne(y.Float32s()[at:end], x.Float32s()[at:end], rows, cols)
			case kernel.Float64:
				transposeOne(y.Float64s()[at:end], x.Float64s()[at:end], rows, cols)
			default:
				transposeOne(y.BF16s()[at:end], x.BF16s()[at:end], rows, cols)
			}
		}
	}
	parts := min(threads, batch)
	var wg sync.WaitGroup
	for i := 1; i < parts; i++ {
		wg.Go(func() { part(i*batch/parts, (i+1)*batch/parts) })
	}
	part(0, batch/max(parts, 1))
	wg.Wait()
}

// transposeOne works in tiles, so that both sides stay in the cache.
func transposeOne[E any](y, x []E, rows, cols int) {
	const tile = 16
	for r0 := 0; r0 < rows; r0 += tile {
		r1 := min(r0+tile, rows)
		for c0 := 0; c0 < cols; c0 += tile {
			for c := c0; c < min(c0+tile, cols); c++ {
				out := y[c*rows+r0 : c*rows+r1]
				for i := range out {
					out[i] = x[(r0+i)*cols+c]
				}
			}
		}
	}
}
