package cli

import (
	"bytes"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/require"
)

// Values of the wrong type are explained in words, not with the names of Go
// functions.
func TestFlagValuesOfTheWrongType(t *testing.T) {
	for args, want := range map[string]string{
		"--count x":                     `--count is "x", expected a whole number`,
		"--count 1.5":                   `--count is "1.5", expected a whole number`,
		"--count=":                      `--count is "", expected a whole number`,
		"--count 99999999999999999999":  `--count is "99999999999999999999", expected a whole number nearer to 0`,
		"-c x":                          `--count is "x", expected a whole number`,
		"--seed -4":                     `--seed is "-4", expected a whole number of at least 0`,
		"--rate fast":                   `--rate is "fast", expected a number`,
		"--quiet=maybe":                 `--quiet is "maybe", expected true or false`,
		"--ladder 1,two":                `--ladder is "1,two", expected a whole number, or several with commas between them`,
		"--count":                       `flag needs an argument: --count`,
		"--ladder 99999999999999999999": `nearer to 0`,
	} {
		root := &cobra.Command{Use: "prog", RunE: func(*cobra.Command, []string) error { return nil }}
		root.Flags().IntP("count", "c", 0, "")
		root.Flags().Uint32("seed", 0, "")
		root.Flags().Float64("rate", 0, "")
		root.Flags().Bool("quiet", false, "")
		root.Flags().IntSlice("ladder", nil, "")
		var out, errs bytes.Buffer
		code := Run(root, strings.Fields(args), &Streams{Out: &out, Err: &errs})
		require.Equal(t, ExitUsage, code, args)
		require.Contains(t, errs.String(), want, args)
		require.NotContains(t, errs.String(), "strconv")
	}
}

// Names in messages do not steer the terminal.
func TestMessagesAreEscaped(t *testing.T) {
	require.Equal(t, `a\x1b[31mb\xffc`+"\n\td\u00fc\ufffd"+`\r\u0085`, printable("a\x1b[31mb\xffc\n\td\u00fc\ufffd\r\u0085"))
	root := &cobra.Command{Use: "prog", RunE: func(*cobra.Command, []string) error { return Usagef("read a\x1b[2Jb") }}
	var errs bytes.Buffer
	require.Equal(t, ExitUsage, Run(root, nil, &Streams{Err: &errs}))
	require.Equal(t, "prog: read a\\x1b[2Jb\n", errs.String())
}
