package ops

import (
	"deeploop/internal/graph"
	"deeploop/internal/kernel"
)

// Attention is o[M, N*K] = softmax(q kᵀ/√K) v per head from the packed
// qkv[M, 3*N*K] (per token q, k, v, each [N, K]), with rotary positions
// inside. M = s.B*s.T. With s.Queries only the first positions of each row of
// the batch ask: o is [B*Queries, N*K], without gradient.
func Attention(b *graph.Builder, qkv *graph.Node, s kernel.AttentionShape) *graph.Node {
	m, width := graph.Dims(qkv)
	if m != s.B*s.T || width != 3*s.N*s.K {
		panic("ops: attention shape differs from its input")
	}
	be := b.Backend
	var lse kernel.Buf // kept where there is a backward
	return b.Apply(graph.Spec{
		Name: "attention", In: []*graph.Node{qkv}, Type: b.Act, Rows: s.B * s.Asking(), Cols: s.N * s.K,
		Forward: func(o kernel.Buf, in []kernel.Buf) { be.Attention(o, lse, in[0], s) },
		Diff:    []bool{true},
		Backward: func(o, do *graph.Node) []*graph.Node {
			lse = kernel.Alloc(b.Act.Master(), s.B*s.N*s.T)
			return []*graph.Node{b.Apply(graph.Spec{
				Name: "attention.dqkv", In: []*graph.Node{do, o, qkv}, Type: b.Act, Rows: m, Cols: width,
				Forward: func(dqkv kernel.Buf, in []kernel.Buf) {
					be.AttentionBackward(dqkv, in[0], in[1], in[2], lse, s)
				},
			})}
		},
	})
}
