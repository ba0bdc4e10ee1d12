package hrm

import (
	"fmt"

	"deeploop/internal/check"
	"deeploop/internal/kernel"
)

// CheckTraining returns a *check.MemoryError when training certainly needs more
// memory than have bytes (0: unknown, everything fits). It counts low, so that
// nothing that would run is refused, and in floating point, so that no size
// overflows. The architecture must have the dataset's sizes.
func (c TrainConfig) CheckTraining(act kernel.DType, have uint64) error {
	return check.Fits(fmt.Sprintf("training %d parameters on batches of %d rows", c.Arch.NumParams(), c.GlobalBatchSize),
		c.TrainingBytes(act), have, "use a smaller global_batch_size or arch.hidden_size, or fewer layers")
}

// TrainingBytes is the memory that training needs at least. The architecture
// must have the dataset's sizes.
func (c TrainConfig) TrainingBytes(act kernel.DType) float64 {
	a, batch := c.Arch, c.GlobalBatchSize
	table := a.modelBytes(act, 0)
	return table + a.segmentBytes(act, batch) + check.TrainingBytes(a.modelBytes(act, 1)-table, a.tapeBytes(act, batch), c.EMA, true)
}

// BatchWithin is the largest half, quarter and so on of the batch that trains in
// so many bytes, 0 where none does.
func (c TrainConfig) BatchWithin(act kernel.DType, have uint64) int {
	return check.Halved(c.GlobalBatchSize, func(batch int) bool {
		c.GlobalBatchSize = batch
		return c.TrainingBytes(act) <= float64(have)
	})
}

// CheckEvaluation is CheckTraining for evaluating batches of so many rows.
func (c Config) CheckEvaluation(act kernel.DType, batch int, have uint64) error {
	const copies = 1 // only a graph with gradient makes room for gradients
	return check.Fits(fmt.Sprintf("evaluating %d parameters on batches of %d rows", c.NumParams(), batch),
		c.modelBytes(act, copies)+c.segmentBytes(act, batch), have, "use a smaller batch")
}

// modelBytes are so many copies of the trained parameters, and the task
// embeddings.
func (c Config) modelBytes(act kernel.DType, copies int) float64 {
	size := float64(act.Master().Size())
	return size * (float64(copies)*float64(c.NumParams()) + float64(c.NumPuzzleIdentifiers)*float64(c.PuzzleEmbDim))
}

// segmentBytes are the two states, the embedded input and one block's widest
// activation.
func (c Config) segmentBytes(act kernel.DType, batch int) float64 {
	d, t := float64(c.HiddenSize), float64(c.Positions())
	first := 3 * d * t
	if c.MLPT {
		first = 2 * float64(c.MixWidth()) * d
	}
	return float64(act.Size()) * float64(batch) * (3*d*t + max(first, 2*float64(c.MLPWidth())*t))
}

// tapeBytes are what the blocks of all calls with gradient (two in HRM,
// L_cycles + 1 in TRM) keep for the backward pass: queries, keys and values,
// the attention's result, gate and up (their product is computed again), and
// what goes into each sublayer.
func (c Config) tapeBytes(act kernel.DType, batch int) float64 {
	blocks := 0
	for _, call := range c.mustSchedule().Grad() {
		blocks += c.Blocks(call)
	}
	d, t := float64(c.HiddenSize), float64(c.Positions())
	row := (6*d + 2*float64(c.MLPWidth())) * t
	if c.MLPT { // gate and up over positions in the place of attention's
		row = (2*d+2*float64(c.MLPWidth()))*t + 2*float64(c.MixWidth())*d
	}
	return float64(act.Size()) * float64(batch) * row * float64(blocks)
}
