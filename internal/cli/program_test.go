package cli

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/require"
)

// runTest runs a program with one command, train, and returns what it did.
func runTest(args ...string) (code int, out, errs string) {
	var o, e bytes.Buffer
	code = Run(testProgram(), args, &Streams{In: strings.NewReader(""), Out: &o, Err: &e})
	return code, o.String(), e.String()
}

func testProgram() *cobra.Command {
	root := &cobra.Command{Use: "prog", Short: "A program", Version: Version([]string{"ref"})}
	s := newTestSettings()
	train := &cobra.Command{Use: "train", Short: "Train", RunE: func(c *cobra.Command, _ []string) error {
		r, err := s.Resolve(testBase())
		if err != nil {
			return err
		}
		fmt.Fprintln(c.OutOrStdout(), r.Value.Arch.Hidden)
		return nil
	}}
	s.AddFlags(train.Flags())
	train.Flags().Int("keep", 0, "checkpoints")
	show := &cobra.Command{Use: "show TASK...", Short: "Show", Args: cobra.MinimumNArgs(1), RunE: func(*cobra.Command, []string) error {
		return errors.New("broken")
	}}
	group := &cobra.Command{Use: "draw", Short: "Draw"}
	group.AddCommand(&cobra.Command{Use: "curve", Short: "Draw one", RunE: func(*cobra.Command, []string) error { return nil }})
	root.AddCommand(train, show, group)
	return root
}

// Parse finds the mistakes that Run finds, and runs nothing.
func TestParse(t *testing.T) {
	for line, want := range map[string]string{
		"train --keep 3 --set arch.hidden_size=5": "",
		"show a b":         "", // would fail
		"draw curve":       "",
		"train --help":     "",
		"train --keeper 3": "unknown flag --keeper; did you mean --keep?",
		"train --keep x":   `--keep is "x", expected a whole number`,
		"train extra":      `unexpected argument "extra"`,
		"show":             "requires at least 1 arg",
		"trian":            "did you mean train?",
		"draw curves":      "did you mean curve?",
	} {
		err := Parse(testProgram(), strings.Fields(line))
		if want == "" {
			require.NoError(t, err, line)
			continue
		}
		require.ErrorContains(t, err, want, line)
	}
}

func TestProgramExitCodesAndMessages(t *testing.T) {
	for _, c := range []struct {
		args string
		code int
		out  string
		err  string
	}{
		{"train --hidden-size 64", 0, "64\n", ""},
		{"train --hidden_size=64", 0, "64\n", ""},
		{"", 0, "Commands:", ""},
		{"--version", 0, "prog " + Number + " (commit ", ""},
		{"trian", 2, "", "prog: unknown command \"trian\"; did you mean train?"},
		{"quux", 2, "", "expected one of draw, show, train"},
		{"draw", 0, "Commands:", ""},
		{"draw crve", 2, "", "unknown command \"crve\"; did you mean curve?"},
		{"draw curve x", 2, "", `unexpected argument "x"`},
		{"train --hiden-size 3", 2, "", "unknown flag --hiden-size; did you mean --hidden-size?"},
		{"train --xyzzy 3", 2, "", "unknown flag --xyzzy; see prog train --help"},
		{"train -q", 2, "", "unknown flag -q; see prog train --help"},
		{"train -keep 3", 2, "", "unknown flag -keep; did you mean --keep?"},
		{"train -kee=3", 2, "", "unknown flag -kee; did you mean --keep?"},
		{"train --hidden-size", 2, "", "needs an argument"},
		{"train arch.hidden_size=3", 2, "", "write --set arch.hidden_size=3"},
		{"train extra", 2, "", `unexpected argument "extra"`},
		{"show", 2, "", "requires at least 1 arg"},
		{"show x", 1, "", "prog: broken"},
	} {
		t.Run(c.args, func(t *testing.T) {
			code, out, errs := runTest(strings.Fields(c.args)...)
			require.Equal(t, c.code, code, errs)
			require.Contains(t, out, c.out)
			require.Contains(t, errs, c.err)
			if c.code != 0 {
				require.Empty(t, out)
				require.Equal(t, 1, strings.Count(errs, "\n"), "one line, no usage text: %s", errs)
			}
		})
	}
}

func TestHelpListsEveryKeyUnderItsHeading(t *testing.T) {
	code, out, _ := runTest("train", "--help")
	require.Equal(t, 0, code)
	head, configuration, ok := strings.Cut(out, "\nConfiguration:\n")
	require.True(t, ok, out)
	require.Contains(t, head, "--keep")
	require.NotContains(t, configuration, "--keep")
	for _, f := range NewSchema[testConfig]().Fields() {
		require.Contains(t, configuration, "--"+f.Flag+" ")
		require.Contains(t, configuration, "["+f.Key+"]")
	}
}

type badInput bool

func (badInput) Error() string    { return "bad" }
func (b badInput) BadInput() bool { return bool(b) }

func TestExitCode(t *testing.T) {
	require.Equal(t, ExitOK, ExitCode(nil))
	require.Equal(t, ExitFailure, ExitCode(errors.New("x")))
	require.Equal(t, ExitUsage, ExitCode(fmt.Errorf("y: %w", Usagef("x %d", 1))))
	require.Equal(t, ExitUsage, ExitCode(fmt.Errorf("y: %w", badInput(true))))
	require.Equal(t, ExitFailure, ExitCode(badInput(false)))
	require.Equal(t, ExitInterrupted, ExitCode(fmt.Errorf("y: %w", ErrInterrupted)))
}
