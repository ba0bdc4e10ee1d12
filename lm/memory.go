package lm

import (
	"fmt"

	"deeploop/internal/check"
	"deeploop/internal/kernel"
)

// CheckTraining returns a *check.MemoryError when training certainly needs
// more memory than have bytes (0: unknown, everything fits).
func (c TrainConfig) CheckTraining(act kernel.DType, have uint64) error {
	return check.Fits(fmt.Sprintf("training %d parameters on batches of %d sequences of %d tokens", c.Arch.NumParams(), c.BatchSize, c.Arch.Context),
		c.TrainingBytes(act), have, "use a smaller batch_size (grad_accum makes up for it), arch.context or arch.hidden_size, or checkpoint_loops")
}

// TrainingBytes is the memory that training needs at least. It counts low, so
// that nothing that would run is refused.
func (c TrainConfig) TrainingBytes(act kernel.DType) float64 {
	master, size := float64(act.Master().Size()), float64(act.Size())
	params := float64(c.Arch.NumParams())
	copies := 3.0 // weight, two moments
	if c.EMA {
		copies++
	}
	tokens := float64(c.BatchSize) * float64(c.Arch.Context)
	d, width := float64(c.Arch.HiddenSize), float64(c.Arch.Width())
	kept := 6*d + 3*width // of a block, for the backward pass
	if c.Arch.MLP != MLPSwiGLU {
		kept = 6*d + 2*width
	}
	kept *= float64(c.Arch.Layers)
	if c.CheckpointLoops {
		kept += float64(c.Arch.Loops) * d
	} else {
		kept *= float64(c.Arch.Loops)
	}
	// Gradients are born where the tape dies: the larger of the two counts.
	return copies*master*params + max(master*params, size*tokens*kept)
}

// CheckEvaluation is CheckTraining for evaluating batches of so many sequences.
func (c Config) CheckEvaluation(act kernel.DType, batch int, have uint64) error {
	d := float64(c.HiddenSize)
	need := float64(act.Master().Size())*float64(c.NumParams()) +
		float64(act.Size())*float64(batch)*float64(c.Context)*(2*d+max(3*d, 2*float64(c.Width())))
	return check.Fits(fmt.Sprintf("evaluating %d parameters on batches of %d sequences of %d tokens", c.NumParams(), batch, c.Context),
		need, have, "use a smaller batch")
}
