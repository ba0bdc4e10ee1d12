package commandtest

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"deeploop/internal/goldentest"
	"deeploop/internal/train"
)

// ResumeTable checks that the page about runs says of every key of a program
// what --resume does with another value, and that there are such keys.
func ResumeTable(t *testing.T, changes []train.Change, keys []string) {
	t.Helper()
	_, section, found := strings.Cut(Read(t, goldentest.Root(), "docs", "run-formats.md"), "\n## Settings of a resumed run\n")
	require.True(t, found)
	section, _, _ = strings.Cut(section, "\n## ")
	for _, c := range changes {
		if !slices.Contains(keys, c.Key) {
			require.Equal(t, "arch.num_puzzle_identifiers", c.Key, "no key of the program; this one follows the data")
			continue
		}
		row := ""
		for line := range strings.Lines(section) {
			if strings.Contains(line, "`"+c.Key+"`") {
				row += line
			}
		}
		require.Equal(t, 1, strings.Count(row, "\n"), "rows with %s: %s", c.Key, row)
		require.Equal(t, c.Follows != "", strings.Contains(row, "| a warning"), row)
		require.Equal(t, c.Measures, strings.Contains(row, "best checkpoint is chosen anew"), row)
	}
}
