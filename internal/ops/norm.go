package ops

import (
	"deeploop/internal/graph"
	"deeploop/internal/kernel"
)

// ResidualNorm is y = gain ⊙ rms(alpha*x + z) over rows of D, the post-norm
// residual of HRM (alpha 1) and DeepLoop (architectures.md A.1). z may be nil:
// plain RMSNorm of alpha*x. gain may be nil.
func ResidualNorm(b *graph.Builder, x, z *graph.Node, gain *graph.Param, alpha, eps float64) *graph.Node {
	rows, d := graph.Dims(x)
	be := b.Backend
	rstd := kernel.Alloc(b.Act.Master(), rows)
	in := []*graph.Node{x}
	diff := []bool{true}
	iz, ig := -1, -1
	if z != nil {
		iz = len(in)
		in, diff = append(in, z), append(diff, true)
	}
	var g *graph.GradBuf
	if gain != nil {
		g = b.Target(gain)
		ig = len(in)
		in, diff = append(in, b.Use(gain)), append(diff, true)
	}
	at := func(bufs []kernel.Buf, i int) kernel.Buf {
		if i < 0 {
			return kernel.Buf{}
		}
		return bufs[i]
	}
	return b.Apply(graph.Spec{
		Name: "residualnorm", In: in, Type: b.Act, Rows: rows, Cols: d, Diff: diff,
		Forward: func(y kernel.Buf, bufs []kernel.Buf) {
			be.ResidualNorm(y, rstd, bufs[0], at(bufs, iz), at(bufs, ig), alpha, eps, d)
		},
		Backward: func(y, dy *graph.Node) []*graph.Node {
			src := []*graph.Node{dy, y}
			if gain != nil { // the normed value is recomputed from x and z
				src = append(src, in...)
			}
			run := func(dx, dz kernel.Buf, bufs []kernel.Buf) {
				var x, zb, gb, dgain kernel.Buf
				if gain != nil {
					x, zb, gb, dgain = bufs[2], at(bufs[2:], iz), at(bufs[2:], ig), g.Buf
					if !g.Touch() {
						clear(dgain.Bytes())
					}
				}
				be.ResidualNormBackward(dx, dz, dgain, bufs[0], bufs[1], rstd, x, zb, gb, alpha, d)
			}
			spec := graph.Spec{
				Name: "residualnorm.dx", In: src, Type: b.Act, Rows: rows, Cols: d, Over: []int{0},
				Forward: func(dx kernel.Buf, bufs []kernel.Buf) { run(dx, kernel.Buf{}, bufs) },
				Second:  func(dx, dz kernel.Buf, bufs []kernel.Buf) { run(dx, dz, bufs) },
			}
			if gain != nil {
				spec.Grads = []*graph.GradBuf{g}
			}
			grads := make([]*graph.Node, len(in))
			switch {
			case z == nil:
				grads[0] = b.Apply(spec)
			case alpha == 1: // dx = dz
				grads[0] = b.Apply(spec)
				grads[iz] = grads[0]
			default:
				grads[0], grads[iz] = b.ApplyPair(spec)
			}
			if gain != nil { // the op above has written it
				grads[ig] = b.Token("residualnorm.dgain", []*graph.Node{grads[0]}, func([]kernel.Buf) {})
			}
			return grads
		},
	})
}
