package ops

import (
	"math"

	"deeploop/internal/graph"
	"deeploop/internal/kernel"
)

// QHead is q[B, 2] = z[position 0 of each example] · Wᵀ + bias: the halt and
// continue logits, in the master type (architectures.md G.1). z is [B*T, D].
func QHead(b *graph.Builder, z *graph.Node, w, bias *graph.Param, batch int) *graph.Node {
	m, d := graph.Dims(z)
	t := m / batch
	be := b.Backend
	gw, gb := b.Target(w), b.Target(bias)
	first := kernel.Alloc(b.Act, batch*d) // z at position 0
	return b.Apply(graph.Spec{
		Name: "qhead", In: []*graph.Node{z, b.Use(w), b.Use(bias)}, Type: b.Act.Master(), Rows: batch, Cols: w.Rows,
		Forward: func(q kernel.Buf, in []kernel.Buf) {
			leading(first, in[0], batch, d, t*d)
			be.Linear(q, first, &w.Weight)
			for i := range q.Len() {
				q.SetAt(i, q.At(i)+in[2].At(i%w.Rows))
			}
		},
		Diff: []bool{true, true, true},
		Backward: func(_, dq *graph.Node) []*graph.Node {
			return qheadBackward(b, dq, first, w, gw, gb, batch, t)
		},
	})
}

func qheadBackward(b *graph.Builder, dq *graph.Node, first kernel.Buf, w *graph.Param, gw, gb *graph.GradBuf, batch, t int) []*graph.Node {
	d := w.Cols
	be := b.Backend
	dqAct := kernel.Alloc(b.Act, batch*w.Rows)
	dfirst := kernel.Alloc(b.Act, batch*d)
	dz := b.Apply(graph.Spec{
		Name: "qhead.dz", In: []*graph.Node{dq, b.Use(w)}, Type: b.Act, Rows: batch * t, Cols: d,
		Forward: func(dz kernel.Buf, in []kernel.Buf) {
			be.Convert(dqAct, in[0])
			be.LinearDX(dfirst, dqAct, &w.Weight, false)
			clear(dz.Bytes())
			for i := range batch {
				copy(dz.Slice(i*t*d, i*t*d+d).Bytes(), dfirst.Slice(i*d, (i+1)*d).Bytes())
			}
		},
	})
	dw := b.Token("qhead.dw", []*graph.Node{dq}, func(in []kernel.Buf) {
		be.Convert(dqAct, in[0])
		be.LinearDW(gw.Buf, dqAct, first, w.Rows, d, gw.Touch())
	}, gw)
	dbias := b.Token("qhead.dbias", []*graph.Node{dq}, func(in []kernel.Buf) {
		if !gb.Touch() {
			clear(gb.Buf.Bytes())
		}
		for i := range in[0].Len() {
			j := i % w.Rows
			gb.Buf.SetAt(j, gb.Buf.At(j)+in[0].At(i))
		}
	}, gb)
	return []*graph.Node{dz, dw, dbias}
}

// HaltLoss is the state of one Q-learning loss op, valid after the forward.
type HaltLoss struct {
	QHalt, QContinue []float64 // [B] logits
	Target           []float64 // [B] target of σ(QContinue)
	HaltSum          float64   // Σ BCE(q_halt, exact)
	ContinueSum      float64   // Σ BCE(q_continue, target)
}

// NewHaltLoss allocates the state for a batch.
func NewHaltLoss(batch int) *HaltLoss {
	return &HaltLoss{QHalt: make([]float64, batch), QContinue: make([]float64, batch), Target: make([]float64, batch)}
}

// bce is the binary cross entropy of the logit x with the probability p.
func bce(x, p float64) float64 {
	return math.Max(x, 0) - x*p + math.Log1p(math.Exp(-math.Abs(x)))
}

// Sigmoid is the logistic function.
func Sigmoid(x float64) float64 { return 1 / (1 + math.Exp(-x)) }

func truth(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

// QLoss is the scalar scale · ½ Σ_b ( BCE(q_halt, sequence exactly right) +
// BCE(q_continue, target) ) (architectures.md G.2). q is [B, 2], target [B, 1]
// holds probabilities, or is nil: then the second term is absent, as with a
// single segment. tokens is the cross-entropy node whose state l tells which
// sequences are right.
func QLoss(b *graph.Builder, q, target, tokens *graph.Node, l *TokenLoss, h *HaltLoss, scale float64) *graph.Node {
	batch, _ := graph.Dims(q)
	in := []*graph.Node{q, tokens}
	back := []*graph.Node{q}
	if target != nil {
		in, back = append(in, target), append(back, target)
	}
	return b.Apply(graph.Spec{
		Name: "qloss", In: in, Type: b.Act.Master(),
		Forward: func(out kernel.Buf, in []kernel.Buf) {
			h.HaltSum, h.ContinueSum = 0, 0
			for i := range batch {
				h.QHalt[i], h.QContinue[i] = in[0].At(2*i), in[0].At(2*i+1)
				h.HaltSum += bce(h.QHalt[i], truth(l.Exact(i)))
				if target != nil {
					h.Target[i] = in[2].At(i)
					h.ContinueSum += bce(h.QContinue[i], h.Target[i])
				}
			}
			out.SetAt(0, scale*0.5*(h.HaltSum+h.ContinueSum))
		},
		Diff: []bool{true, false, false}[:len(in)],
		Backward: func(_, dout *graph.Node) []*graph.Node {
			dq := b.Apply(graph.Spec{
				Name: "qloss.dq", In: append(back, dout), Type: b.Act.Master(), Rows: batch, Cols: 2,
				Forward: func(dq kernel.Buf, in []kernel.Buf) {
					s := 0.5 * scale * in[len(in)-1].At(0)
					for i := range batch {
						dq.SetAt(2*i, s*(Sigmoid(in[0].At(2*i))-truth(l.Exact(i))))
						c := 0.0
						if target != nil {
							c = s * (Sigmoid(in[0].At(2*i+1)) - in[1].At(i))
						}
						dq.SetAt(2*i+1, c)
					}
				},
			})
			grads := make([]*graph.Node, len(in))
			grads[0] = dq
			return grads
		},
	})
}

// Callback computes out[rows, cols] (master type) by calling run, which may
// execute the graphs of an arena. It has no gradient.
func Callback(b *graph.Builder, name string, in []*graph.Node, rows, cols int, graphs *graph.Arena, run func(out kernel.Buf, in []kernel.Buf)) *graph.Node {
	return b.Apply(graph.Spec{
		Name: name, In: in, Type: b.Act.Master(), Rows: rows, Cols: cols, Lends: graphs, Forward: run,
	})
}
