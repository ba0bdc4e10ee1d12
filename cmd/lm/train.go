package main

import (
	"context"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"deeploop/internal/cli"
	"deeploop/internal/command"
	"deeploop/lm"
	"deeploop/lm/corpus"
)

type trainOptions = command.TrainOptions[lm.TrainConfig]

func newTrainCmd(s *cli.Streams) *cobra.Command {
	o := &trainOptions{Settings: newTrainSettings()}
	cmd := &cobra.Command{
		Use:   "train",
		Short: "Train a language model",
		Long: `Train a looped language model on a dataset of lm prepare, or on token shards of
llm.c or nanoGPT.

The configuration starts from a preset; a YAML file (--config) and the command
line (--set KEY=VALUE, or the flag of a key) change it, in this order. Without
--data the newest dataset below data/ is used, and the embedded sample text
(--data sample) when there is none; without --run a new folder below runs/.

The vocabulary is the tokenizer's, which goes into every checkpoint: a run can
be used without its dataset.

Ctrl-C saves and says how to continue. A run that exists is only continued
with --resume and only replaced with --force.`,
		Example: `  lm train
  lm train --data data/books --run runs/a --layers 2 --loops 5 --steps 5000
  lm train --data data/shakespeare --placement prenorm --eval-loops 1,2,8 --kappa-steps 100
  lm train --run runs/a --resume --stop-after 500`,
		RunE: func(c *cobra.Command, _ []string) error { return training.Run(c.Context(), s, o) },
	}
	addTrainFlags(cmd.Flags(), o)
	return cmd
}

func addTrainFlags(fs *pflag.FlagSet, o *trainOptions) {
	o.AddFlags(fs, lm.Presets(), lm.DefaultPreset)
	o.Settings.AddFlags(fs)
}

// training is lm train as package command runs it.
var training = &command.Training[lm.TrainConfig]{
	Program: program, Kind: lm.Kind, Preset: lm.Preset, Stored: lm.CheckpointConfig,
	Keys: func(c *lm.TrainConfig) command.Keys {
		return command.Keys{DataPath: &c.DataPath, Kernel: &c.Kernel, Precision: &c.Precision, Threads: &c.Threads}
	},
	DataMarker: corpus.ManifestName,
	IsData: func(dir string) bool {
		_, err := corpus.ReadManifest(dir)
		return err == nil
	},
	Owned: []string{corpus.TokenizerName},
	Open: func(ctx context.Context, s *cli.Streams, p *command.Plan[lm.TrainConfig]) (command.Task, error) {
		return openTask(ctx, s, p)
	},
}
