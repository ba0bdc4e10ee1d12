package commandtest

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"deeploop/internal/cli"
)

// SmallDisk runs a command line as a process whose files cannot grow beyond
// some 50 kB, which fails half way as on a full disk, and returns its message.
func (p Program) SmallDisk(t *testing.T, line string) string {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("the size of files is limited by a POSIX shell")
	}
	const blocks = 64 // of 512 bytes, or 1024 in some shells
	c := p.Process(line)
	c.Path, c.Args = "/bin/sh", []string{"sh", "-c", fmt.Sprintf(`ulimit -f %d; exec "$0"`, blocks), os.Args[0]}
	var out strings.Builder
	c.Stdout, c.Stderr = &out, &out
	err := c.Run()
	var exit *exec.ExitError
	require.True(t, errors.As(err, &exit), "%v %s", err, out.String())
	require.Equal(t, cli.ExitFailure, exit.ExitCode(), out.String())
	return out.String()
}
