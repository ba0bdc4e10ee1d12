package main

import (
	"strings"
	"testing"

	"deeploop/internal/command/commandtest"
)

// A killed sweep leaves no training behind.
func TestKilledSweepEndsItsTraining(t *testing.T) {
	workFolder(t)
	commandtest.SweepKilled(t, strings.TrimPrefix(trainTiny, "train "))
}
