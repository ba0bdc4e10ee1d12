package commandtest

import (
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/require"
)

var longFlag = regexp.MustCompile(`--([A-Za-z-]+)`)

// commandsExist checks that every command line of the program in these texts,
// and in the examples of its help, names a command that exists and flags that
// it has. It returns how many there are.
func commandsExist(t *testing.T, root *cobra.Command, texts ...string) (seen int) {
	t.Helper()
	for _, c := range allCommands(root) {
		texts = append(texts, c.Example)
	}
	command := regexp.MustCompile("(?:^|[`;&] *)" + root.Name() + " ([a-z][a-z-]*)([^`#&;\n]*)")
	for _, line := range strings.Split(strings.Join(texts, "\n"), "\n") {
		for _, m := range command.FindAllStringSubmatch(strings.TrimSpace(line), -1) {
			cmd, _, err := root.Find(strings.Fields(m[1] + m[2])) // subcommands too
			require.NoError(t, err, line)
			require.True(t, cmd != root, line)
			cmd.InitDefaultHelpFlag()
			for _, f := range longFlag.FindAllStringSubmatch(m[2], -1) {
				require.NotNil(t, cmd.Flag(f[1]), "%s has no flag --%s: %s", cmd.CommandPath(), f[1], line)
			}
			seen++
		}
	}
	return seen
}
