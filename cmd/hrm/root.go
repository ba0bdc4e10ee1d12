package main

import (
	"github.com/spf13/cobra"

	"deeploop/internal/cli"
	"deeploop/internal/kernel/pick"
)

// newRootCmd builds the command tree. One file per subcommand: its options
// struct, newXCmd (flags), xRun (logic).
func newRootCmd(s *cli.Streams) *cobra.Command {
	root := &cobra.Command{
		Use:   "hrm",
		Short: "Train, evaluate and score hierarchical reasoners on ARC-AGI",
		Example: `  hrm build-data                 the embedded sample tasks
  hrm train                      on the newest dataset, into a new folder under runs/
  hrm eval && hrm score          the newest run`,
		Version: cli.Version(pick.Available()),
	}
	root.AddCommand(newBuildDataCmd(s), newTrainCmd(s), newEvalCmd(s), newBenchCmd(s), newShowCmd(s), newPlotCmd(s), newScoreCmd(s), newInspectCmd(s))
	return root
}
