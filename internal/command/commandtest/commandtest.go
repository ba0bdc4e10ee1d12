// Package commandtest runs a program's command lines in tests, inside the
// test's process or as a process of its own.
package commandtest

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/require"

	"deeploop/internal/checkpoint"
	"deeploop/internal/cli"
)

// variable holds the command line of a test's process that is to be the
// program, an argument a line.
const variable = "DEEPLOOP_TEST_COMMAND"

// Values of asProgram: the arguments are what Small makes of them, or stay.
const inSmall, asWritten = "small", "as written"

// Program runs one command line and returns the exit code, as main does.
type Program func(args []string, s *cli.Streams) int

// Main is a package's TestMain. A process that Process made is the program, and
// so is one that a shell of Examples starts, on what small makes of its
// arguments.
func (p Program) Main(m *testing.M, small Small) {
	switch os.Getenv(asProgram) {
	case inSmall:
		os.Exit(p(small(os.Args[1:]), cli.Standard()))
	case asWritten:
		os.Exit(p(os.Args[1:], cli.Standard()))
	}
	if args, set := os.LookupEnv(variable); set {
		if args == "" { // splits into one empty argument
			os.Exit(p(nil, cli.Standard()))
		}
		os.Exit(p(strings.Split(args, "\n"), cli.Standard()))
	}
	os.Exit(m.Run())
}

// Process is the program with this command line as a process that is not
// started yet.
func (p Program) Process(line string, more ...string) *exec.Cmd {
	c := exec.Command(os.Args[0])
	c.Env = append(os.Environ(), variable+"="+strings.Join(append(strings.Fields(line), more...), "\n"))
	return c
}

// Call runs a command line and returns what it printed.
func (p Program) Call(args ...string) (code int, out, errs string) {
	var o, e bytes.Buffer
	code = p(args, &cli.Streams{In: strings.NewReader(""), Out: &o, Err: &e})
	return code, o.String(), e.String()
}

// OK runs a command line that must succeed. more are arguments that are not
// split at spaces.
func (p Program) OK(t *testing.T, line string, more ...string) (out, errs string) {
	t.Helper()
	code, out, errs := p.Call(append(strings.Fields(line), more...)...)
	require.Equal(t, cli.ExitOK, code, "%s\n%s%s", line, out, errs)
	return out, errs
}

// Fails runs a command line that must end with code and returns its message.
func (p Program) Fails(t *testing.T, code int, line string, more ...string) string {
	t.Helper()
	got, out, errs := p.Call(append(strings.Fields(line), more...)...)
	require.Equal(t, code, got, "%s\n%s%s", line, out, errs)
	return errs
}

// Digest is the hash of the state in a run's last checkpoint.
func (p Program) Digest(t *testing.T, run string) string {
	t.Helper()
	out, _ := p.OK(t, "inspect --digest", run)
	lines := strings.Split(strings.TrimSpace(out), "\n")
	return lines[len(lines)-1]
}

// Read returns a file's text.
func Read(t *testing.T, parts ...string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(parts...))
	require.NoError(t, err)
	return string(b)
}

// Write makes a file.
func Write(t *testing.T, path, text string) {
	t.Helper()
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
	require.NoError(t, os.WriteFile(path, []byte(text), 0o644))
}

// Touch makes an empty file with its folders, changed at minute min of some
// hour.
func Touch(t *testing.T, min int, parts ...string) {
	t.Helper()
	path := filepath.Join(parts...)
	Write(t, path, "")
	when := time.Date(2026, 1, 2, 3, min, 0, 0, time.UTC)
	require.NoError(t, os.Chtimes(path, when, when))
}

// Appears waits until a process has written this text into a file.
func Appears(t *testing.T, path, text string) {
	t.Helper()
	require.Eventually(t, func() bool {
		b, err := os.ReadFile(path)
		return err == nil && len(b) > 0 && strings.Contains(string(b), text)
	}, 30*time.Second, 5*time.Millisecond)
}

// CopyCheckpoint copies a run's last checkpoint to another name, as one of
// another step has.
func CopyCheckpoint(t *testing.T, run, name string) {
	t.Helper()
	ck, err := checkpoint.OpenFound(run, checkpoint.LastSaved)
	require.NoError(t, err)
	require.NoError(t, ck.Close())
	require.NoError(t, os.CopyFS(filepath.Join(run, checkpoint.Folder, name), os.DirFS(ck.Dir())))
}

// WriteZstd makes a file compressed by Zstandard.
func WriteZstd(t *testing.T, path, text string) {
	t.Helper()
	e, err := zstd.NewWriter(nil)
	require.NoError(t, err)
	Write(t, path, string(e.EncodeAll([]byte(text), nil)))
}

// Complete returns what a shell offers for the last word of a command line,
// files and folders of its own aside.
func (p Program) Complete(t *testing.T, line string) (offers []string) {
	t.Helper()
	out, _ := p.OK(t, "__completeNoDesc", strings.Split(line, " ")...)
	for offer := range strings.Lines(out) {
		if offer = strings.TrimSpace(offer); offer != "" && !strings.HasPrefix(offer, ":") {
			offers = append(offers, offer)
		}
	}
	return offers
}
