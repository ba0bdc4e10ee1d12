package main

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"deeploop/hrm"
	"deeploop/internal/cli"
	"deeploop/internal/goldentest"
)

var (
	hrmCommand = regexp.MustCompile("(?:^|[`;&] *)hrm ([a-z][a-z-]*)([^`#&;\n]*)")
	longFlag   = regexp.MustCompile(`--([A-Za-z-]+)`)
)

// Every hrm command in README and in help texts exists, with its flags.
func TestCommandsInTextsExist(t *testing.T) {
	readme, err := os.ReadFile(filepath.Join(goldentest.Root(), "README.md"))
	require.NoError(t, err)
	root := newRootCmd(&cli.Streams{In: strings.NewReader(""), Out: &bytes.Buffer{}, Err: &bytes.Buffer{}})
	texts := []string{string(readme), root.Example}
	for _, c := range root.Commands() {
		texts = append(texts, c.Example)
	}
	seen := 0
	for _, line := range strings.Split(strings.Join(texts, "\n"), "\n") {
		for _, m := range hrmCommand.FindAllStringSubmatch(strings.TrimSpace(line), -1) {
			cmd, _, err := root.Find([]string{m[1]})
			require.NoError(t, err, line)
			require.True(t, cmd != root, line)
			for _, f := range longFlag.FindAllStringSubmatch(m[2], -1) {
				require.NotNil(t, cmd.Flags().Lookup(f[1]), "%s has no flag --%s: %s", m[1], f[1], line)
			}
			seen++
		}
	}
	require.Greater(t, seen, 20)
}

// The table of presets in the README names all of them.
func TestReadmeNamesThePresets(t *testing.T) {
	readme, err := os.ReadFile(filepath.Join(goldentest.Root(), "README.md"))
	require.NoError(t, err)
	for _, p := range hrm.Presets() {
		require.Contains(t, string(readme), "| `"+p+"`")
	}
}
