package main

import (
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"deeploop/internal/command/commandtest"
)

// The experiments of this program can be planned.
func TestExperimentsCanBePlanned(t *testing.T) {
	commandtest.Experiments(t, run, func() *cobra.Command { return newRootCmd(nil) })
}

// A killed sweep leaves no training behind.
func TestKilledSweepEndsItsTraining(t *testing.T) {
	workFolder(t)
	commandtest.SweepKilled(t, strings.TrimPrefix(trainTiny, "train "))
}
