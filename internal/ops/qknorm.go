package ops

import (
	"deeploop/internal/graph"
	"deeploop/internal/kernel"
)

// QKNorm is QK-norm: from the packed qkv[M, 3*N*K] (as Attention takes it) the
// same with every head of q and of k divided by its root mean square and
// multiplied by the gain gq or gk [1, K], one for all heads. It belongs before
// Attention, whose rotation comes after it (architectures.md A). Both gains
// may be nil. M = s.B*s.T.
func QKNorm(b *graph.Builder, qkv *graph.Node, gq, gk *graph.Param, s kernel.AttentionShape, eps float64) *graph.Node {
	m, width := graph.Dims(qkv)
	if m != s.B*s.T || width != 3*s.N*s.K {
		panic("ops: QK-norm shape differs from its input")
	}
	be := b.Backend
	rstd := kernel.Alloc(b.Act.Master(), m*2*s.N)
	in, diff := []*graph.Node{qkv}, []bool{true}
	var gains, dgains [2]kernel.Buf // absent without gain
	var targets []*graph.GradBuf
	var load []func() // bring the accumulators into dgains
	for i, p := range []*graph.Param{gq, gk} {
		if p == nil {
			continue
		}
		g := b.Target(p)
		gains[i] = p.Data
		in, diff, targets = append(in, b.Use(p)), append(diff, true), append(targets, g)
		load = append(load, func() {
			if !g.Touch() {
				clear(g.Buf.Bytes())
			}
			dgains[i] = g.Buf
		})
	}
	return b.Apply(graph.Spec{
		Name: "qknorm", In: in, Type: b.Act, Rows: m, Cols: width, Diff: diff,
		Forward: func(y kernel.Buf, bufs []kernel.Buf) { be.QKNorm(y, rstd, bufs[0], gains[0], gains[1], s, eps) },
		Backward: func(_, dy *graph.Node) []*graph.Node {
			dqkv := b.Apply(graph.Spec{
				Name: "qknorm.dqkv", In: append([]*graph.Node{dy}, in...), Type: b.Act, Rows: m, Cols: width, Over: []int{0}, Grads: targets,
				Forward: func(dqkv kernel.Buf, bufs []kernel.Buf) {
					for _, f := range load {
						f()
					}
					be.QKNormBackward(dqkv, dgains[0], dgains[1], bufs[0], bufs[1], rstd, gains[0], gains[1], s)
				},
			})
			grads := []*graph.Node{dqkv}
			for range targets { // the op above has written them
				grads = append(grads, b.Token("qknorm.dgain", []*graph.Node{dqkv}, func([]kernel.Buf) {}))
			}
			return grads
		},
	})
}
