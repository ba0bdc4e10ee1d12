package commandtest

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"

	"deeploop/internal/checkpoint"
	"deeploop/internal/cli"
)

// Mistakes runs command lines that must end with the exit code for mistakes,
// each with a message that has this text.
func (p Program) Mistakes(t *testing.T, lines map[string]string) {
	t.Helper()
	for line, want := range lines {
		got := p.Fails(t, cli.ExitUsage, line)
		require.Contains(t, got, want, line)
		require.NotContains(t, got, "json: cannot unmarshal", line)
	}
}

// MisspeltFlags leaves a letter out of every flag of every command of the
// program, which must name the right flag and end with the exit code for
// mistakes.
func MisspeltFlags(t *testing.T, p Program, root *cobra.Command) {
	t.Helper()
	for _, c := range allCommands(root) {
		if !c.Runnable() || c.Hidden {
			continue
		}
		c.LocalFlags().VisitAll(func(f *pflag.Flag) {
			if f.Hidden || len(f.Name) < 5 {
				return
			}
			wrong := f.Name[:2] + f.Name[3:]
			if c.Flags().Lookup(wrong) != nil {
				return
			}
			got := p.Fails(t, cli.ExitUsage, commandName(c)+" --"+wrong+"=1")
			require.True(t, strings.Contains(got, "did you mean --"+f.Name+"?") || nearest(c, got, wrong, f.Name), "%s --%s: %s", c.CommandPath(), wrong, got)
		})
	}
}

// nearest accepts another flag that differs from the wrong one by one letter too.
func nearest(c *cobra.Command, got, wrong, right string) bool {
	_, name, found := strings.Cut(strings.TrimSuffix(strings.TrimSpace(got), "?"), "did you mean --")
	return found && c.Flags().Lookup(name) != nil && len(name) <= len(right) && len(wrong) <= len(right)
}

// ForeignRun makes a run folder with a checkpoint of a model of another kind.
func ForeignRun(t *testing.T, dir, kind string) {
	t.Helper()
	store := checkpoint.Store{Dir: filepath.Join(dir, checkpoint.Folder)}
	var set checkpoint.Set
	_, err := store.Save(1, checkpoint.Meta{Kind: kind, Config: []byte(`{}`)}, &set)
	require.NoError(t, err)
}
