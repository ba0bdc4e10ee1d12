// Command lm prepares text for looped language models.
package main

import (
	"os"

	"github.com/spf13/cobra"

	"deeploop/internal/cli"
	"deeploop/internal/kernel/pick"
)

func main() { os.Exit(run(os.Args[1:], cli.Standard())) }

// run executes one command line and returns the exit code.
func run(args []string, s *cli.Streams) int {
	return cli.Run(newRootCmd(s), args, s)
}

// newRootCmd builds the command tree. One file per subcommand: its options
// struct, newXCmd (flags), xRun (logic).
func newRootCmd(s *cli.Streams) *cobra.Command {
	root := &cobra.Command{
		Use:     "lm",
		Short:   "Looped language models",
		Version: cli.Version(pick.Available()),
	}
	root.AddCommand(newPrepareCmd(s))
	root.AddCommand(newShowCmd(s))
	return root
}
