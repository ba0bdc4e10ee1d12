package hrm

import "deeploop/deeploop"

// Work of the model in floating-point operations: matrix products and
// attention. A product [M,K]·[K,N] counts 2·M·N·K; attention 4·B·N·T·T·K
// forward (scores and their product with v) and 2.5 times that backward (five
// products of that size for two); an MLP over positions is products of B·D
// rows. Norms, SwiGLU, losses and the optimizers are not counted: a thousandth
// of the operations, limited by memory. So a speed in FLOP/s, or a share of
// what the machine multiplies at best, is a lower bound.
//
// What is counted is what runs, every row of it, those of task slots included:
//
//	step     the calls without gradient, forward
//	         the calls with gradient, forward and backward (dX and dW of every
//	         product)
//	         token head and q head, forward and backward
//	         the q target: one more segment and the q head, forward, where
//	         halt_max_steps is above 1 and no_ACT_continue is off; of its last
//	         block keys and values of all positions, and the rest of position 0
//	         alone
//	segment  (evaluation) all calls, token head and q head, forward
//
// TestFlopsEqualWhatRuns compares with the calls a profile counts, so work
// that is saved one day has to leave here too.

// TrainStepFlops returns the operations of one training step.
func (c Config) TrainStepFlops(batch int) float64 {
	s, b := c.mustSchedule(), float64(batch)
	const withBackward = 3 // y, dX and dW are one product each
	f := c.forwardFlops(s.NoGrad(), b)
	for _, call := range s.Grad() {
		products, attention := c.callFlops(call, b)
		f += withBackward*products + (1+2.5)*attention
	}
	f += withBackward * (c.headFlops(b) + c.qHeadFlops(b))
	if c.asksQTarget() {
		f += c.forwardFlops(s.Calls, b) + c.qHeadFlops(b) - c.notAskedFlops(b)
	}
	return f
}

// EvalSegmentFlops returns the operations of one segment of evaluation with
// its heads.
func (c Config) EvalSegmentFlops(batch int) float64 {
	b := float64(batch)
	return c.forwardFlops(c.mustSchedule().Calls, b) + c.headFlops(b) + c.qHeadFlops(b)
}

func (c Config) forwardFlops(calls []deeploop.Module, batch float64) (f float64) {
	for _, call := range calls {
		products, attention := c.callFlops(call, batch)
		f += products + attention
	}
	return f
}

// callFlops is one call of a stack, forward.
func (c Config) callFlops(m deeploop.Module, batch float64) (products, attention float64) {
	d, f, t, n := float64(c.HiddenSize), float64(c.MLPWidth()), float64(c.Positions()), float64(c.Blocks(m))
	if c.MLPT {
		return n * 2 * batch * 3 * t * d * (float64(c.MixWidth()) + f), 0
	}
	weights := 3*d*d + d*d + 2*f*d + f*d // qkv, o, gate and up, down
	return n * 2 * batch * t * weights, n * 4 * batch * t * t * d
}

// notAskedFlops is what the q target leaves out of its last block: attention
// and the products behind it, of all positions but one. An MLP over positions
// needs and gives them all.
func (c Config) notAskedFlops(batch float64) float64 {
	d, f, t := float64(c.HiddenSize), float64(c.MLPWidth()), float64(c.Positions())
	if c.MLPT {
		return batch * (t - 1) * 2 * 3 * f * d
	}
	return batch * (t - 1) * (2*(d*d+3*f*d) + 4*t*d)
}

// headFlops is the token head, forward, and qHeadFlops that of halting, which
// reads position 0 alone.
func (c Config) headFlops(batch float64) float64 {
	return 2 * batch * float64(c.Positions()) * float64(c.VocabSize) * float64(c.HiddenSize)
}

func (c Config) qHeadFlops(batch float64) float64 { return 2 * batch * 2 * float64(c.HiddenSize) }

// mustSchedule is the schedule of a valid configuration.
func (c Config) mustSchedule() deeploop.Schedule {
	s, err := c.schedule()
	if err != nil {
		panic("hrm: " + err.Error())
	}
	return s
}
