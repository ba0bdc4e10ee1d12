package main

import (
	"fmt"

	"deeploop/hrm"
	"deeploop/internal/command"
	"deeploop/internal/profile"
)

// benchDoc is the document of hrm bench --json. Tokens are cells of grids; task
// slots do not count.
type benchDoc struct {
	*command.Figures
	EvalSegment      *profile.Spread `json:"eval_segment_s"`
	TrainStepFlops   float64         `json:"train_step_flops"`
	EvalSegmentFlops float64         `json:"eval_segment_flops"`
	Config           benchConfig     `json:"config"`
}

// benchConfig is what was timed.
type benchConfig struct {
	Preset     string `json:"preset"`
	Hidden     int    `json:"hidden_size"`
	Heads      int    `json:"num_heads"`
	HLayers    int    `json:"H_layers"`
	LLayers    int    `json:"L_layers"`
	HCycles    int    `json:"H_cycles"`
	LCycles    int    `json:"L_cycles"`
	SeqLen     int    `json:"seq_len"`
	TaskSlots  int    `json:"task_slots"` // positions in front of the grid
	Batch      int    `json:"batch_size"`
	Vocab      int    `json:"vocab_size"`
	Placement  string `json:"placement"`
	Parameters int    `json:"parameters"`
}

func newBenchDoc(c hrm.TrainConfig, preset string, f *command.Figures) benchDoc {
	a := c.Arch
	return benchDoc{
		Figures: f, EvalSegment: f.Eval,
		TrainStepFlops: a.TrainStepFlops(c.GlobalBatchSize), EvalSegmentFlops: a.EvalSegmentFlops(c.GlobalBatchSize),
		Config: benchConfig{
			Preset: preset, Hidden: a.HiddenSize, Heads: a.NumHeads, HLayers: a.HLayers, LLayers: a.LLayers, HCycles: a.HCycles, LCycles: a.LCycles,
			SeqLen: a.SeqLen, TaskSlots: a.PuzzleEmbLen(), Batch: c.GlobalBatchSize, Vocab: a.VocabSize, Placement: a.Placement, Parameters: a.NumParams(),
		},
	}
}

func (c benchConfig) String() string {
	blocks := fmt.Sprintf("%d+%d blocks", c.HLayers, c.LLayers)
	if c.HLayers == 0 {
		blocks = fmt.Sprintf("%d blocks for both levels", c.LLayers)
	}
	return fmt.Sprintf("hidden %d, %d heads, %s, cycles %dx%d, %d cells, batch %d, %s: %d parameters",
		c.Hidden, c.Heads, blocks, c.HCycles, c.LCycles, c.SeqLen, c.Batch, c.Placement, c.Parameters)
}
