package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/require"

	"deeploop/internal/command/commandtest"
	"deeploop/internal/goldentest"
	"deeploop/lm"
)

// Every lm command in the pages and in help texts exists, with its flags, and
// those in blocks parse.
func TestCommandsInTextsExist(t *testing.T) {
	newRoot := func() *cobra.Command { return newRootCmd(nil) }
	require.Greater(t, commandtest.CommandsExist(t, newRoot(), commandtest.PageCode(t)...), 50)
	require.Greater(t, commandtest.PagesParse(t, newRoot), 50)
}

// The table of presets in the README names all of them.
func TestReadmeNamesThePresets(t *testing.T) {
	readme, err := os.ReadFile(filepath.Join(goldentest.Root(), "README.md"))
	require.NoError(t, err)
	for _, p := range lm.Presets() {
		require.Contains(t, string(readme), "| `"+p+"`")
	}
}
