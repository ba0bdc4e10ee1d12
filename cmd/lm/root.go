package main

import (
	"github.com/spf13/cobra"

	"deeploop/deeploop"
	"deeploop/internal/cli"
	"deeploop/internal/command"
	"deeploop/internal/kernel/pick"
	"deeploop/lm"
	"deeploop/lm/corpus"
	"deeploop/lm/suite"
	"deeploop/lm/tokens"
)

// program is its name.
const program = "lm"

const plotExample = `  lm plot
  lm plot runs/base runs/deeploop --metric loss --metric bits_per_byte --out curves.png`

// sweepExample is a file for lm sweep.
const sweepExample = `  name: loops                     # default the file's name
  train: --data sample --steps 300
  seeds: [0, 1, 2]
  parallel: 2                     # runs at a time
  threads: 1                      # of each
  minutes: 0.5                    # expected for a run
  then: ["eval --run {run} --json"]         # after each, if anything
  metrics: [loss, then.results.0.accuracy]  # last evaluation, or in its JSON
  settings:
    - {name: one, train: --loops 1}
    - {name: three, train: --loops 3, seeds: [0]}
`

// newRootCmd builds the command tree. One file per subcommand: its options
// struct, newXCmd (flags), xRun (logic).
func newRootCmd(s *cli.Streams) *cobra.Command {
	root := &cobra.Command{
		Use:   program,
		Short: "Train looped language models and use them",
		Example: `  lm train                    # the embedded sample text, into a new folder under runs/
  lm plot && lm inspect       # the newest run
  lm eval && lm generate      # its best checkpoint`,
		Version: cli.Version(pick.Available()),
	}
	root.AddCommand(
		newPrepareCmd(s), newShowCmd(s), newTrainCmd(s), newBenchCmd(s),
		newEvalCmd(s), newSuiteCmd(s, openModel), newGenerateCmd(s, openModel), newServeCmd(s, openModel),
		newExportCmd(s), newImportCmd(s), newDiagnoseCmd(s),
		command.NewPlotCmd(s, program, lm.Kind, []string{"loss", "bits_per_byte"}, plotExample),
		command.NewInspectCmd(s, program, lm.Kind, newTrainSettings().Schema),
		command.NewSweepCmd(s, program, sweepExample),
		command.NewCompletionCmd(s, program),
		command.NewReferenceCmd(s, program, newTrainSettings().Schema, lm.Presets(), lm.Preset),
	)
	cli.AddLogFlags(root, s)
	command.Complete(root, map[string][]string{
		"preset": lm.Presets(), "placement": deeploop.Placements, "split": {"val", "train"}, "mlp": {lm.MLPSwiGLU, lm.MLPGELU, lm.MLPGELUErf, lm.MLPReLU2},
		"tokenizer": {tokens.ByteName, tokens.CharName, tokens.GPT2Name}, "dtype": {"fp32", "bf16"}, "task": suite.TaskNames(),
	}, corpus.ManifestName)
	return root
}
