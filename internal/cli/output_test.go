package cli

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/require"
)

// full is a disk without room after some bytes.
type full struct{ room int }

func (f *full) Write(p []byte) (int, error) {
	if len(p) > f.room {
		return f.room, &fs.PathError{Op: "write", Path: "/dev/stdout", Err: errors.New("no room")}
	}
	f.room -= len(p)
	return len(p), nil
}

// What cannot be printed is one sentence and exit code 1, whether a command
// looks at the error or not; other errors are not hidden by it.
func TestOutputThatCannotBeWritten(t *testing.T) {
	const sentence = "prog: write to standard output: no room\n"
	for _, line := range []string{"", "--help", "train --help", "help train", "--version", "train --hidden-size 64", "draw"} {
		for _, room := range []int{0, 2} {
			var errs bytes.Buffer
			code := Run(testProgram(), strings.Fields(line), &Streams{In: strings.NewReader(""), Out: &full{room}, Err: &errs})
			require.Equal(t, ExitFailure, code, line)
			require.Equal(t, sentence, errs.String(), line)
		}
	}
	run := func(does func(out io.Writer) error) (int, string) {
		var errs bytes.Buffer
		root := &cobra.Command{Use: "prog"}
		root.AddCommand(&cobra.Command{Use: "do", RunE: func(c *cobra.Command, _ []string) error { return does(c.OutOrStdout()) }})
		code := Run(root, []string{"do"}, &Streams{Out: &full{}, Err: &errs})
		return code, errs.String()
	}
	code, errs := run(func(out io.Writer) error {
		_, one := io.WriteString(out, "x")
		_, two := io.WriteString(out, "y")
		return errors.Join(one, two)
	})
	require.Equal(t, ExitFailure, code)
	require.Equal(t, sentence, errs, "once")
	code, errs = run(func(out io.Writer) error {
		_, _ = io.WriteString(out, "x")
		return Usagef("a mistake")
	})
	require.Equal(t, ExitUsage, code)
	require.Equal(t, "prog: a mistake\n", errs)
}

// A program still knows what its output is.
func TestOutputIsTheFileItWas(t *testing.T) {
	require.Equal(t, os.Stdout, file(&output{w: os.Stdout}))
	require.Nil(t, file(&output{w: io.Discard}))
	require.False(t, IsTerminal(&output{w: io.Discard}))
	require.Zero(t, Width(&output{w: io.Discard}))
}
