// Command hrm builds ARC datasets, trains the Hierarchical Reasoning Model,
// evaluates it and scores its votes.
package main

import (
	"fmt"
	"os"

	"deeploop/internal/cli"
)

func main() { os.Exit(run(os.Args[1:], cli.Standard())) }

// run executes one command line and returns the exit code.
func run(args []string, s *cli.Streams) int {
	root := newRootCmd(s)
	root.SetArgs(args)
	err := root.Execute()
	if err != nil {
		fmt.Fprintln(s.Err, "hrm:", err)
	}
	return cli.ExitCode(err)
}
