package ops

import (
	"deeploop/internal/graph"
	"deeploop/internal/kernel"
)

// KVCache holds the rotated keys and the values of the positions that one
// attention sublayer has seen, each [N, Context, K] activations.
type KVCache struct {
	Keys, Values kernel.Buf
	// Past is how many positions the cache holds. The caller raises it after a
	// run by the positions that the run added.
	Past int
	// Context is how many positions fit.
	Context int
}

// NewKVCache returns an empty cache for n heads of k elements.
func NewKVCache(act kernel.DType, n, context, k int) *KVCache {
	return &KVCache{Keys: kernel.Alloc(act, n*context*k), Values: kernel.Alloc(act, n*context*k), Context: context}
}

// CachedAttention is o[T, N*K], the causal attention of s.T new positions that
// follow the cache's Past ones, from their packed qkv[T, 3*N*K]; the run adds
// them to the cache (kernel.Backend.AttentionCached). Past is read at each run
// and not changed. s.B is 1, and Cos and Sin hold cache.Context positions. A run
// fails where Past+T exceeds Context. There is no gradient.
func CachedAttention(b *graph.Builder, qkv *graph.Node, cache *KVCache, s kernel.AttentionShape) *graph.Node {
	m, width := graph.Dims(qkv)
	if s.B != 1 || m != s.T || width != 3*s.N*s.K {
		panic("ops: cached attention shape differs from its input")
	}
	if n := s.N * cache.Context * s.K; cache.Keys.Len() != n || cache.Values.Len() != n {
		panic("ops: cached attention's cache differs from its context")
	}
	be := b.Backend
	return b.Apply(graph.Spec{
		Name: "attention.cached", In: []*graph.Node{qkv}, Type: b.Act, Rows: m, Cols: s.N * s.K,
		Forward: func(o kernel.Buf, in []kernel.Buf) {
			be.AttentionCached(o, in[0], cache.Keys, cache.Values, cache.Past, s)
		},
	})
}
