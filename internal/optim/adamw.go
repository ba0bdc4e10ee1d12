package optim

import "deeploop/internal/kernel"

// AdamW is Adam with decoupled weight decay (Loshchilov and Hutter 2019) in
// PyTorch's form: epsilon is added to the root of the corrected second moment,
// and the decay is LR·WeightDecay. Params marked NoDecay are not decayed.
type AdamW struct {
	Beta1, Beta2 float64
	Eps          float64
	WeightDecay  float64
	// Average, where set, follows the weights in the same pass over memory, as
	// EMA.Update would after it.
	Average *EMA
	// Steps counts the updates made so far. It belongs in a checkpoint.
	Steps int
}

// Step updates weights and moments of all params from their gradients times
// gradScale (see Clip; 1 without clipping) with learning rate lr. Gradients are
// left as they are.
func (o *AdamW) Step(b kernel.Backend, params []Param, lr, gradScale float64) {
	o.Steps++
	h := kernel.AdamHyper{LR: lr, Beta1: o.Beta1, Beta2: o.Beta2, Eps: o.Eps, GradScale: gradScale, Step: o.Steps}
	for i := range params {
		p := &params[i]
		h.WeightDecay = o.WeightDecay
		if p.NoDecay {
			h.WeightDecay = 0
		}
		h.Average, h.AverageRate = o.Average.of(i)
		b.AdamW(p.W, p.G, p.M, p.V, h)
		p.wrote()
	}
}

// Clip returns the factor that brings gradients of the given global norm
// (GradNorm) down to norm max, and leaves smaller ones alone:
// min(1, max/(norm+1e-6)), as PyTorch's clip_grad_norm_. A max of 0 or below
// means no clipping: 1.
func Clip(norm, max float64) float64 {
	if max <= 0 {
		return 1
	}
	return min(1, max/(norm+1e-6))
}
