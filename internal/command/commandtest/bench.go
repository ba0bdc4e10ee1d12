package commandtest

import (
	"encoding/json"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"deeploop/internal/cli"
)

// BenchInterrupted interrupts the command bench while it times training steps:
// it must end with what was measured, and the exit code for that. keys are of
// its document besides.
func BenchInterrupted(t *testing.T, p Program, keys ...string) {
	t.Helper()
	c := p.Process("bench --preset testing --seconds 100000 --steps 1000000 --json --threads 1 --kernel ref")
	t.Chdir(t.TempDir())
	errs, err := os.Create("errors")
	require.NoError(t, err)
	defer errs.Close()
	var out strings.Builder
	c.Stdout, c.Stderr = &out, errs
	require.NoError(t, c.Start())
	Appears(t, "errors", "training steps ")
	require.NoError(t, c.Process.Signal(os.Interrupt))
	var exit *exec.ExitError
	require.ErrorAs(t, c.Wait(), &exit)
	require.Equal(t, cli.ExitInterrupted, exit.ExitCode(), Read(t, "errors"))
	require.Contains(t, Read(t, "errors"), "interrupted after ")
	var d map[string]any
	require.NoError(t, json.Unmarshal([]byte(out.String()), &d))
	require.Equal(t, true, d["interrupted"])
	require.NotNil(t, d["train_step_s"])
	for _, key := range keys {
		require.Contains(t, d, key)
	}
}
