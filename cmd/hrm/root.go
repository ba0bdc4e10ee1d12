package main

import (
	"github.com/spf13/cobra"

	"deeploop/internal/cli"
)

func newRootCmd(s *cli.Streams) *cobra.Command {
	root := &cobra.Command{
		Use:           "hrm",
		Short:         "Train, evaluate and score hierarchical reasoners on ARC-AGI",
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.SetIn(s.In)
	root.SetOut(s.Out)
	root.SetErr(s.Err)
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error {
		return &cli.UsageError{Err: err}
	})
	// One file per subcommand: its options struct, newXCmd (flags), xRun (logic).
	root.AddCommand()
	return root
}
