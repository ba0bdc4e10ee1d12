package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"deeploop/internal/cli"
	"deeploop/internal/command/commandtest"
	"deeploop/internal/goldentest"
	"deeploop/lm"
)

// Every lm command in README and in help texts exists, with its flags.
func TestCommandsInTextsExist(t *testing.T) {
	readme, err := os.ReadFile(filepath.Join(goldentest.Root(), "README.md"))
	require.NoError(t, err)
	root := newRootCmd(&cli.Streams{In: strings.NewReader(""), Out: &bytes.Buffer{}, Err: &bytes.Buffer{}})
	require.Greater(t, commandtest.CommandsExist(t, root, string(readme)), 20)
}

// The table of presets in the README names all of them.
func TestReadmeNamesThePresets(t *testing.T) {
	readme, err := os.ReadFile(filepath.Join(goldentest.Root(), "README.md"))
	require.NoError(t, err)
	for _, p := range lm.Presets() {
		require.Contains(t, string(readme), "| `"+p+"`")
	}
}
