package main

import (
	"fmt"

	"deeploop/internal/command"
	"deeploop/internal/profile"
	"deeploop/internal/wording"
	"deeploop/lm"
)

// benchDoc is the document of lm bench --json.
type benchDoc struct {
	*command.Figures
	EvalBatch      *profile.Spread `json:"eval_batch_s"`
	TrainStepFlops float64         `json:"train_step_flops"`
	// FlopsPerToken is of a forward pass, as the literature counts it.
	FlopsPerToken lm.Flops    `json:"flops_per_token"`
	Config        benchConfig `json:"config"`
}

// benchConfig is what was timed.
type benchConfig struct {
	Preset          string  `json:"preset"`
	Layers          int     `json:"layers"`
	Loops           int     `json:"loops"`
	Hidden          int     `json:"hidden_size"`
	Heads           int     `json:"num_heads"`
	Context         int     `json:"context"`
	Batch           int     `json:"batch_size"`
	Vocab           int     `json:"vocab_size"`
	MLP             string  `json:"mlp"`
	MLPWidth        int     `json:"mlp_width"`
	Placement       string  `json:"placement"`
	P               float64 `json:"p"`
	CheckpointLoops bool    `json:"checkpoint_loops"`
	Parameters      int     `json:"parameters"`
}

func newBenchDoc(c lm.TrainConfig, preset string, f *command.Figures) benchDoc {
	a := c.Arch
	return benchDoc{
		Figures: f, EvalBatch: f.Eval, TrainStepFlops: c.TrainStepFlops(), FlopsPerToken: a.FlopsPerToken(),
		Config: benchConfig{
			Preset: preset, Layers: a.Layers, Loops: a.Loops, Hidden: a.HiddenSize, Heads: a.NumHeads, Context: a.Context, Batch: c.BatchSize,
			Vocab: a.VocabSize, MLP: a.MLP, MLPWidth: a.Width(), Placement: a.Placement, P: a.P, CheckpointLoops: c.CheckpointLoops, Parameters: a.NumParams(),
		},
	}
}

// text tells the configuration for people.
func (d benchDoc) text() string {
	c := d.Config
	again := ""
	if c.CheckpointLoops {
		again = ", loops computed again"
	}
	return fmt.Sprintf("hidden %d, %d heads, %s, %s, MLP %d (%s), context %d, batch %d, vocabulary %d, %s%s: %d parameters\noperations     %s",
		c.Hidden, c.Heads, wording.Count(c.Layers, "block"), wording.Count(c.Loops, "loop"), c.MLPWidth, c.MLP, c.Context, c.Batch, c.Vocab, c.Placement, again, c.Parameters, flopsText(d.FlopsPerToken))
}
