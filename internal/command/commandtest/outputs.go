package commandtest

import (
	"bytes"
	"io"
	"os"
	"os/exec"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"deeploop/internal/cli"
)

// UnwritableOutput runs command lines that print something as processes: with a
// full disk as standard output they must end with one sentence and exit code 1,
// with a pipe that nobody reads without a word.
func (p Program) UnwritableOutput(t *testing.T, lines ...string) {
	t.Helper()
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Skip("no /dev/full here:", err)
	}
	defer full.Close()
	if runtime.GOOS == "windows" {
		t.Skip("pipes end processes elsewhere")
	}
	run := func(line string, out io.Writer) (code int, errs string) {
		var e bytes.Buffer
		c := p.Process(line)
		c.Stdout, c.Stderr = out, &e
		err := c.Run()
		var exit *exec.ExitError
		if err != nil {
			require.ErrorAs(t, err, &exit, line)
		}
		return c.ProcessState.ExitCode(), e.String()
	}
	for _, line := range lines {
		code, errs := run(line, full)
		require.Equal(t, cli.ExitFailure, code, "%s\n%s", line, errs)
		require.Equal(t, 1, bytes.Count([]byte(errs), []byte("write to standard output: no space left on device\n")), "%s\n%s", line, errs)

		r, w, err := os.Pipe()
		require.NoError(t, err)
		require.NoError(t, r.Close())
		code, errs = run(line, w)
		require.NoError(t, w.Close())
		require.Equal(t, -1, code, "%s is to end by the signal\n%s", line, errs)
		require.NotContains(t, errs, "standard output", line)
		require.NotContains(t, errs, "pipe", line)
	}
}
