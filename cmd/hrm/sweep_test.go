package main

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"deeploop/internal/command/commandtest"
)

// A killed sweep leaves no training behind.
func TestKilledSweepEndsItsTraining(t *testing.T) {
	workFolder(t)
	commandtest.SweepKilled(t, strings.TrimPrefix(trainTiny, "train "))
}

// The file that the help shows can be swept as it is written.
func TestSweepOfTheHelp(t *testing.T) {
	workFolder(t)
	require.NoError(t, os.Rename("data/small", "data/arc10"))
	hrmProgram.SweepOfTheHelp(t, sweepExample)
}
