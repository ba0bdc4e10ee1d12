package optim

import "deeploop/internal/kernel"

// AdamATan2 is Adam with atan2 in place of the division (architectures.md
// G.5, after imoneoi/adam-atan2): no epsilon, decoupled weight decay on every
// tensor, bias of the first moment corrected outside the arctangent.
type AdamATan2 struct {
	Beta1, Beta2 float64
	WeightDecay  float64
	// Average, where set, follows the weights in the same pass over memory, as
	// EMA.Update would after it.
	Average *EMA
	// Steps counts the updates made so far. It belongs in a checkpoint.
	Steps int
}

// Step updates weights and moments of all params from their gradients with
// learning rate lr. Gradients are left as they are.
func (o *AdamATan2) Step(b kernel.Backend, params []Param, lr float64) {
	o.Steps++
	h := kernel.AdamHyper{LR: lr, Beta1: o.Beta1, Beta2: o.Beta2, WeightDecay: o.WeightDecay, Step: o.Steps}
	for i := range params {
		p := &params[i]
		h.Average, h.AverageRate = o.Average.of(i)
		b.AdamATan2(p.W, p.G, p.M, p.V, h)
		p.wrote()
	}
}
