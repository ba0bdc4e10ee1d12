package lm

// Flops are floating-point operations per token, forward, by part. A product
// [M,K]·[K,N] counts 2·M·N·K.
type Flops struct {
	Blocks    float64 `json:"blocks"`    // products of the executed blocks
	Attention float64 `json:"attention"` // scores and their product with v
	Head      float64 `json:"head"`
}

// Total is their sum.
func (f Flops) Total() float64 { return f.Blocks + f.Attention + f.Head }

// FlopsPerToken returns the forward operations per token as the literature
// counts them: attention 4·T·d for each executed block, the masked half
// included (architectures.md B). Training is three times that.
func (c Config) FlopsPerToken() Flops {
	n, d := float64(c.Depth()), float64(c.HiddenSize)
	return Flops{
		Blocks:    n * 2 * float64(c.blockWeights()),
		Attention: n * 4 * float64(c.Context) * d,
		Head:      2 * float64(c.VocabSize) * d,
	}
}

// TrainStepFlops returns the operations of products and attention that one
// optimizer step runs, those of norms, activations and AdamW left out: a share
// of what the machine multiplies at best is a lower bound. Attention's masked
// half does not run and is not counted here; backward it is 2.5 times forward
// (five products of that size for two). With checkpoint_loops the forward pass
// of all rounds runs twice. TestFlopsEqualWhatRuns compares with what a
// profile counts.
func (c TrainConfig) TrainStepFlops() float64 {
	f := c.Arch.FlopsPerToken()
	f.Attention /= 2
	step := 3*(f.Blocks+f.Head) + (1+2.5)*f.Attention
	if c.CheckpointLoops {
		step += f.Blocks + f.Attention
	}
	return step * float64(c.TokensPerStep())
}
