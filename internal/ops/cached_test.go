package ops

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"deeploop/internal/graph"
	"deeploop/internal/kernel"
	"deeploop/internal/kernel/ref"
)

// A sequence in one causal graph, and fed position by position to a graph that
// reads Past at each run; one position too many is an error.
func TestCachedAttentionReadsPastAtEachRun(t *testing.T) {
	const total, n, k, ctx = 7, 2, 4, 7
	s := kernel.AttentionShape{B: 1, T: total, N: n, K: k, Causal: true}
	s.Cos, s.Sin = kernel.RopeTables(kernel.Float64, ctx, k, 100)
	r := rand.New(rand.NewPCG(2, 9))
	qkv := kernel.Alloc(kernel.Float64, total*3*n*k)
	for i := range qkv.Len() {
		qkv.SetAt(i, r.NormFloat64())
	}
	run := func(rows int, in kernel.Buf, f func(b *graph.Builder, x *graph.Node) *graph.Node) (*graph.Runner, *graph.Node) {
		b := graph.NewBuilder(ref.New(1), kernel.Float64)
		out := f(b, b.InputOf("qkv", in, rows, 3*n*k))
		g, err := b.Build(out)
		require.NoError(t, err)
		t.Cleanup(func() { g.Close() })
		return g, out
	}
	whole, o := run(total, qkv, func(b *graph.Builder, x *graph.Node) *graph.Node { return Attention(b, x, s) })
	require.NoError(t, whole.Run())
	cache := NewKVCache(kernel.Float64, n, ctx, k)
	one, token := s, kernel.Alloc(kernel.Float64, 3*n*k)
	one.T = 1
	step, y := run(1, token, func(b *graph.Builder, x *graph.Node) *graph.Node { return CachedAttention(b, x, cache, one) })
	for i := range total {
		copy(token.Bytes(), qkv.Slice(i*3*n*k, (i+1)*3*n*k).Bytes())
		require.NoError(t, step.Run())
		require.Equal(t, i, cache.Past)
		require.InDeltaSlice(t, whole.Buf(o).Float64s()[i*n*k:(i+1)*n*k], step.Buf(y).Float64s(), 1e-12)
		cache.Past++
	}
	require.ErrorContains(t, step.Run(), "more positions than the cache")
}
