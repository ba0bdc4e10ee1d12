package train

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"deeploop/internal/cli"
)

// TestMain lets this program be its own child: with TRAIN_DIR set it resumes
// the toy run there and writes one byte to stdout at the end of every step.
func TestMain(m *testing.M) {
	dir := os.Getenv("TRAIN_DIR")
	if dir == "" {
		var err error
		if wholesAt, err = os.MkdirTemp("", "train-test-"); err != nil {
			panic(err)
		}
		code := m.Run()
		os.RemoveAll(wholesAt)
		os.Exit(code)
	}
	ctx, stop := OnInterrupt(context.Background(), func(s os.Signal) { fmt.Fprintf(os.Stderr, "%v: finishing the step\n", s) })
	defer stop()
	y := newToy(childSteps)
	y.each = func(int) {
		os.Stdout.Write([]byte{'.'})
		if os.Getenv("TRAIN_SLOW") != "" {
			time.Sleep(time.Minute)
		}
		time.Sleep(time.Millisecond)
	}
	err := session(ctx, dir, Resume, options(childSteps), y)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	os.Exit(cli.ExitCode(err))
}

const childSteps = 40

func child(t *testing.T, dir string, env ...string) (*exec.Cmd, *bufio.Reader, *bufio.Reader) {
	c := exec.Command(os.Args[0])
	c.Env = append(append(os.Environ(), "TRAIN_DIR="+dir), env...)
	out, err := c.StdoutPipe()
	require.NoError(t, err)
	errs, err := c.StderrPipe()
	require.NoError(t, err)
	require.NoError(t, c.Start())
	t.Cleanup(func() { _ = c.Process.Kill() })
	return c, bufio.NewReader(out), bufio.NewReader(errs)
}

// A real process is killed at random moments, in steps, saves and
// evaluations, and resumed until it is done: the result is that of an
// undisturbed run.
func TestKilledAgainAndAgain(t *testing.T) {
	want := whole(t, childSteps)
	dir := filepath.Join(t.TempDir(), "killed")
	r := rand.New(rand.NewPCG(1, 2))
	kills, done := 0, false
	for !done {
		require.Less(t, kills, 400, "the run makes no progress")
		c, out, errs := child(t, dir)
		if _, err := io.CopyN(io.Discard, out, 1+r.Int64N(8)); err == nil {
			time.Sleep(time.Duration(r.IntN(4000)) * time.Microsecond)
			require.NoError(t, c.Process.Kill())
		}
		msg, _ := io.ReadAll(errs)
		err := c.Wait()
		if done = err == nil; !done {
			kills++
			require.False(t, c.ProcessState.Exited(), "it failed by itself: %s", msg)
		}
	}
	require.Greater(t, kills, 5)
	requireSame(t, want, dir)
	entries, err := os.ReadDir(filepath.Join(dir, "checkpoints"))
	require.NoError(t, err)
	require.LessOrEqual(t, len(entries), 3, "nothing of the killed saves is left: %v", entries)
}

func TestSignals(t *testing.T) {
	if runtime.GOOS == "windows" {
		return // no signals between processes there
	}
	signals := []os.Signal{os.Interrupt, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) { // as below nohup
		signals = append(signals, syscall.SIGHUP)
	}
	for _, sig := range signals {
		dir := filepath.Join(t.TempDir(), "run")
		c, out, errs := child(t, dir)
		_, err := io.CopyN(io.Discard, out, 4)
		require.NoError(t, err)
		require.NoError(t, c.Process.Signal(sig))
		msg, _ := io.ReadAll(errs)
		require.Error(t, c.Wait())
		require.Equal(t, cli.ExitInterrupted, c.ProcessState.ExitCode(), string(msg))
		require.Contains(t, string(msg), "finishing the step")
		require.Contains(t, string(msg), "continue with: toy --resume")
		require.GreaterOrEqual(t, index(t, dir).Last.Step, 4)
	}

	c, out, errs := child(t, filepath.Join(t.TempDir(), "run"), "TRAIN_SLOW=1")
	_, err := out.ReadByte()
	require.NoError(t, err)
	require.NoError(t, c.Process.Signal(os.Interrupt))
	line, err := errs.ReadString('\n')
	require.NoError(t, err)
	require.Contains(t, line, "finishing the step")
	require.NoError(t, c.Process.Signal(os.Interrupt))
	require.Error(t, c.Wait(), "the second one does not wait for the step")
	require.False(t, c.ProcessState.Exited())
}
