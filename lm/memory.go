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
	weights := float64(act.Master().Size()) * float64(c.Arch.NumParams())
	return check.TrainingBytes(weights, c.tapeBytes(act), c.EMA, c.freshGradients())
}

// BatchWithin is the largest half, quarter and so on of the batch that trains in
// so many bytes, 0 where none does.
func (c TrainConfig) BatchWithin(act kernel.DType, have uint64) int {
	return check.Halved(c.BatchSize, func(batch int) bool {
		c.BatchSize = batch
		return c.TrainingBytes(act) <= float64(have)
	})
}

// tapeBytes are what the blocks of all rounds keep for the backward pass: what
// goes into each sublayer, queries, keys and values, the attention's result, and
// two values as wide as the MLP, gate and up or what goes into an activation and
// comes out (SwiGLU's product is computed again). With checkpoint_loops it is
// one round's, and the state before each.
func (c TrainConfig) tapeBytes(act kernel.DType) float64 {
	d, loops := float64(c.Arch.HiddenSize), float64(c.Arch.Loops)
	kept := (6*d + 2*float64(c.Arch.Width())) * float64(c.Arch.Layers)
	if c.CheckpointLoops {
		kept += loops * d
	} else {
		kept *= loops
	}
	return float64(act.Size()) * float64(c.BatchSize) * float64(c.Arch.Context) * kept
}

// CheckEvaluation is CheckTraining for evaluating batches of so many sequences.
func (c Config) CheckEvaluation(act kernel.DType, batch int, have uint64) error {
	d := float64(c.HiddenSize)
	need := float64(act.Master().Size())*float64(c.NumParams()) +
		float64(act.Size())*float64(batch)*float64(c.Context)*(2*d+max(3*d, 2*float64(c.Width())))
	return check.Fits(fmt.Sprintf("evaluating %d parameters on batches of %d sequences of %d tokens", c.NumParams(), batch, c.Context),
		need, have, "use a smaller batch")
}
