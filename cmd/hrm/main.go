// Command hrm builds ARC datasets, trains the Hierarchical Reasoning Model,
// evaluates it and scores its votes.
package main

import (
	"os"

	"deeploop/internal/cli"
)

//go:generate go run . reference --out ../../docs/reference

func main() { os.Exit(run(os.Args[1:], cli.Standard())) }

// run executes one command line and returns the exit code.
func run(args []string, s *cli.Streams) int {
	return cli.Run(newRootCmd(s), args, s)
}
