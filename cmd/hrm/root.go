package main

import (
	"github.com/spf13/cobra"

	"deeploop/augment"
	"deeploop/deeploop"
	"deeploop/hrm"
	"deeploop/internal/cli"
	"deeploop/internal/command"
	"deeploop/internal/kernel/pick"
)

// program is its name.
const program = "hrm"

const plotExample = `  hrm plot
  hrm plot runs/plain runs/deeploop --metric lm_loss --metric exact_accuracy --out curves.png`

// sweepExample is a file for hrm sweep.
const sweepExample = `  name: placements                # default the file's name
  train: --data data/arc10 --steps 300
  seeds: [0, 1, 2]
  parallel: 2                     # runs at a time
  threads: 1                      # of each
  minutes: 0.5                    # expected for a run
  then: ["eval --run {run}", "score --predictions {run} --json"]   # after each, if anything
  metrics: [lm_loss, then.headline.all_tests.percent]  # last evaluation, or in the last one's JSON
  settings:
    - {name: postnorm, train: --placement postnorm}
    - {name: deeploop, train: --placement deeploop, seeds: [0]}
`

// newRootCmd builds the command tree. One file per subcommand: its options
// struct, newXCmd (flags), xRun (logic).
func newRootCmd(s *cli.Streams) *cobra.Command {
	root := &cobra.Command{
		Use:   "hrm",
		Short: "Train, evaluate and score hierarchical reasoners on ARC-AGI",
		Example: `  hrm build-data              # the embedded sample tasks
  hrm train                   # on the newest dataset, into a new folder under runs/
  hrm eval && hrm score       # the newest run
  hrm view                    # all of it in the browser`,
		Version: cli.Version(pick.Available()),
	}
	root.AddCommand(
		newBuildDataCmd(s), newTrainCmd(s), newEvalCmd(s), newSolveCmd(s), newBenchCmd(s), newShowCmd(s), newScoreCmd(s),
		newImportCmd(s), newExportCmd(s), newViewCmd(s), newReportCmd(s),
		command.NewPlotCmd(s, program, hrm.Kind, []string{"lm_loss", "exact_accuracy"}, plotExample),
		command.NewInspectCmd(s, program, hrm.Kind, newTrainSettings().Schema),
		command.NewSweepCmd(s, program, sweepExample),
		command.NewCompletionCmd(s, program),
		command.NewReferenceCmd(s, program, newTrainSettings().Schema, hrm.Presets(), hrm.Preset),
	)
	cli.AddLogFlags(root, s)
	command.Complete(root, map[string][]string{"preset": hrm.Presets(), "placement": deeploop.Placements, "color": {"auto", "always", "never"}}, augment.ManifestName)
	return root
}
