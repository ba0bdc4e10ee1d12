package main

import (
	"deeploop/internal/cli"
	"deeploop/lm"
)

// newTrainSettings describes the configuration of a training run as a file
// and flags.
func newTrainSettings() *cli.Settings[lm.TrainConfig] {
	const folders = "a run is a folder here, see --run; remove the line"
	return &cli.Settings[lm.TrainConfig]{
		Schema: cli.NewSchema[lm.TrainConfig](),
		Foreign: map[string]string{
			"run_name":        folders,
			"project_name":    folders,
			"checkpoint_path": "use --run DIR; remove the line",
			"vocab_size":      "it comes from the dataset's tokenizer; see arch.vocab_multiple",
			"arch.vocab_size": "it comes from the dataset's tokenizer; see arch.vocab_multiple",
		},
		Follow: func(c *lm.TrainConfig, base lm.TrainConfig, chosen func(string) bool) { c.Follow(base, chosen) },
	}
}
