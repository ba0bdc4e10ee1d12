package commandtest

import (
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"deeploop/internal/cli"
)

// Resumes trains 20 steps by the command line args, which lacks --steps and
// --run: at once, as 10 and 10 more, and in a process that is killed and
// interrupted again and again. All must leave the same bytes and the same
// metrics. The working folder has the data.
func (p Program) Resumes(t *testing.T, name, args string, kills int) {
	t.Helper()
	args += " --steps 20 --run runs/"
	p.OK(t, args+"whole")
	want := p.Digest(t, "runs/whole")
	same := func(run string) {
		t.Helper()
		require.Equal(t, want, p.Digest(t, run))
		require.Equal(t, Read(t, "runs/whole/metrics.jsonl"), Read(t, run, "metrics.jsonl"))
	}

	_, errs := p.OK(t, args+"halves --stop-after 10")
	require.Contains(t, errs, "at step 10 of 20")
	require.Contains(t, errs, name+" train --run runs/halves --resume")
	require.NotEqual(t, want, p.Digest(t, "runs/halves"))
	p.OK(t, "train --run runs/halves --resume")
	same("runs/halves")

	line := args + "killed --resume" // a folder without a checkpoint starts from the beginning
	for i := range kills {
		c := p.Process(line)
		require.NoError(t, c.Start())
		done := make(chan error, 1)
		go func() { done <- c.Wait() }()
		select {
		case <-done:
		case <-time.After(time.Duration(20+15*i) * time.Millisecond):
			signal := os.Signal(syscall.SIGKILL)
			if i%3 == 2 {
				signal = os.Interrupt
			}
			if c.Process.Signal(signal) == nil {
				<-done
			}
		}
	}
	out, err := p.Process(line).CombinedOutput()
	require.NoError(t, err, string(out))
	same("runs/killed")
}

// Interrupted starts a command line as a process, interrupts it as Ctrl-C does
// once it has written this text into a file, and returns what it printed. It
// must end with the exit code for that. The file errors in the working folder
// has what it wrote to standard error.
func (p Program) Interrupted(t *testing.T, line, file, text string) (out, errs string) {
	t.Helper()
	c := p.Process(line)
	said, err := os.Create("errors")
	require.NoError(t, err)
	defer said.Close()
	var printed strings.Builder
	c.Stdout, c.Stderr = &printed, said
	require.NoError(t, c.Start())
	Appears(t, file, text)
	require.NoError(t, c.Process.Signal(os.Interrupt))
	var exit *exec.ExitError
	require.ErrorAs(t, c.Wait(), &exit)
	require.Equal(t, cli.ExitInterrupted, exit.ExitCode(), Read(t, "errors"))
	return printed.String(), Read(t, "errors")
}
