package main

import (
	"deeploop/hrm"
	"deeploop/internal/cli"
)

// newTrainSettings describes the configuration of a training run as a file
// and flags.
func newTrainSettings() *cli.Settings[hrm.TrainConfig] {
	const fromDataset = "it comes from the dataset; remove the line"
	const folders = "a run is a folder here, see --run; remove the line"
	return &cli.Settings[hrm.TrainConfig]{
		Schema: cli.NewSchema[hrm.TrainConfig](),
		Foreign: map[string]string{
			"project_name":                folders,
			"run_name":                    folders,
			"checkpoint_path":             "use --run DIR; remove the line",
			"arch.forward_dtype":          "use precision (fp32, bf16 or auto)",
			"arch.batch_size":             "use global_batch_size",
			"arch.seq_len":                fromDataset,
			"arch.vocab_size":             fromDataset,
			"arch.num_puzzle_identifiers": fromDataset,
		},
		Follow: func(c *hrm.TrainConfig, base hrm.TrainConfig, chosen func(string) bool) { c.Follow(base, chosen) },
	}
}
