// Command lm is the place of the looped language models.
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
	return cli.Run(newRootCmd(), args, s)
}

func newRootCmd() *cobra.Command {
	return &cobra.Command{
		Use:   "lm",
		Short: "Looped language models",
		Long: `Looped language models.

This version has no lm command yet: preparing text, training, evaluating and
generating are planned on the compute layer that hrm already runs on.`,
		Version: cli.Version(pick.Available()),
	}
}
