package main

import (
	"testing"

	"github.com/spf13/cobra"

	"deeploop/hrm"
	"deeploop/internal/command/commandtest"
)

// What pages, help and experiments say of this program is true.
func TestPages(t *testing.T) {
	commandtest.CheckPages(t, run, func() *cobra.Command { return newRootCmd(nil) }, hrm.Presets())
}
