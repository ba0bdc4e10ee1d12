package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

type limited struct {
	Section struct {
		Note string `yaml:"note"`
	} `yaml:"section"`
	Names []string `yaml:"names"`
}

func loadLimited(t *testing.T, path string) (limited, error) {
	t.Helper()
	var c limited
	s := &Settings[limited]{Schema: NewSchema[limited]()}
	err := s.Load(path, &c)
	return c, err
}

func limitedFile(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "c.yaml")
	require.NoError(t, os.WriteFile(path, []byte(text), 0o644))
	return path
}

// Files made to exhaust the parser end with a message.
func TestConfigurationFilesAreBounded(t *testing.T) {
	const n = 20000
	indented := ""
	for i := range 100 {
		indented += strings.Repeat(" ", i) + "a:\n"
	}
	for name, text := range map[string]string{
		"brackets":     "names: " + strings.Repeat("[", n),
		"braces":       strings.Repeat("{a: ", n),
		"dashes":       strings.Repeat("- ", n),
		"questions":    strings.Repeat("? ", n),
		"in a bracket": "names: [" + strings.Repeat("? ", n),
		"anchors":      "a: " + strings.Repeat("&a ", n),
		"tags":         "a: " + strings.Repeat("!!a ", n),
		"keys":         strings.Repeat("a: ", n),
		"indentation":  indented,
	} {
		_, err := loadLimited(t, limitedFile(t, text))
		require.ErrorContains(t, err, "more than 32 levels", name)
		require.Equal(t, ExitUsage, ExitCode(err))
	}
	_, err := loadLimited(t, limitedFile(t, "# "+strings.Repeat("x", maxConfigBytes)))
	require.ErrorContains(t, err, "more than 256 KB")
	require.Equal(t, ExitUsage, ExitCode(err))
	for _, path := range []string{t.TempDir(), os.DevNull} {
		_, err = loadLimited(t, path)
		require.ErrorContains(t, err, "no regular file")
		require.Equal(t, ExitUsage, ExitCode(err))
	}
}

// Length alone is no depth, nor are brackets in strings and comments.
func TestLongConfigurationFilesAreFine(t *testing.T) {
	names := strings.Repeat("a, ", 500)
	for _, text := range []string{
		strings.Repeat("# [[[[{{{{\n", 500) + "section:\n  note: \"" + strings.Repeat("[{", 100) + "\"\nnames: [" + names + "b]\n",
		"section:\n  note: x\nnames:\n" + strings.Repeat("  - a\n", 500) + "  - b\n",
	} {
		c, err := loadLimited(t, limitedFile(t, text))
		require.NoError(t, err)
		require.Len(t, c.Names, 501)
	}
}
