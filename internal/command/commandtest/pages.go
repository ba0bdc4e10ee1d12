package commandtest

import (
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/require"

	"deeploop/internal/cli"
	"deeploop/internal/goldentest"
	"deeploop/internal/pages"
)

// placeholder is a word such as S or 2R, which pages write for a number.
var placeholder = regexp.MustCompile(`^\d*[A-Z]$`)

// CheckPages compares the pages of the repository with the program: the
// reference is that of the commands as they are, commands in texts and examples
// exist, those in blocks parse, the README names the presets, and the
// experiments can be planned. newRoot makes a command tree for each.
func CheckPages(t *testing.T, p Program, newRoot func() *cobra.Command, presets []string) {
	t.Run("reference", func(t *testing.T) {
		dir, program := t.TempDir(), newRoot().Name()
		p.OK(t, "reference --out", dir)
		for _, name := range []string{program + ".md", program + "-configuration.md"} {
			require.Equal(t, Read(t, dir, name), Read(t, goldentest.Root(), "docs", "reference", name), "run go generate ./cmd/...")
		}
	})
	t.Run("texts", func(t *testing.T) { require.Greater(t, commandsExist(t, newRoot(), pageCode(t)...), 50) })
	t.Run("blocks", func(t *testing.T) { require.Greater(t, pagesParse(t, newRoot), 50) })
	t.Run("presets", func(t *testing.T) {
		for _, preset := range presets {
			require.Contains(t, Read(t, goldentest.Root(), "README.md"), "| `"+preset+"`")
		}
	})
	t.Run("experiments", func(t *testing.T) { experiments(t, p, newRoot) })
}

// pagesParse checks every command line of the program in the blocks of all
// pages as the program itself would read it: command, flags, their values, and
// arguments. It returns how many there are.
func pagesParse(t *testing.T, newRoot func() *cobra.Command) (seen int) {
	t.Helper()
	all, err := pages.All(goldentest.Root())
	require.NoError(t, err)
	program := newRoot().Name()
	for _, p := range all {
		for _, b := range p.Blocks() {
			for _, words := range pages.Commands(b.Text) {
				if words[0] != program && words[0] != "bin/"+program {
					continue
				}
				require.NoError(t, parses(newRoot(), words[1:]), "%s, block at line %d: %s", p.Path, b.Line, strings.Join(words, " "))
				seen++
			}
		}
	}
	return seen
}

// pageCode is the `code` in the text of all pages, with its backquotes.
func pageCode(t *testing.T) (code []string) {
	t.Helper()
	all, err := pages.All(goldentest.Root())
	require.NoError(t, err)
	for _, p := range all {
		for _, c := range p.Code() {
			code = append(code, "`"+c+"`")
		}
	}
	return code
}

// experiments checks that the sweeps of this program in the folder experiments
// can be planned, and that each of their runs parses.
func experiments(t *testing.T, p Program, newRoot func() *cobra.Command) {
	t.Helper()
	program := newRoot().Name()
	files, err := filepath.Glob(filepath.Join(goldentest.Root(), "experiments", program+"-*.yaml"))
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		out, _ := p.OK(t, "sweep --dry-run", file)
		seen := 0
		for _, words := range pages.Commands(out) {
			if words[0] == program {
				require.NoError(t, cli.Parse(newRoot(), words[1:]), "%s: %s", file, strings.Join(words, " "))
				seen++
			}
		}
		require.NotZero(t, seen, file)
	}
}

func parses(root *cobra.Command, args []string) error {
	var words []string
	for _, w := range args {
		w = strings.Trim(w, "[]") // around what may be left out
		switch {
		case w == "...":
		case placeholder.MatchString(w):
			words = append(words, "1")
		default:
			words = append(words, w)
		}
	}
	return cli.Parse(root, words)
}
