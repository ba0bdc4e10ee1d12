package commandtest

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"deeploop/internal/cli"
)

// BenchInterrupted interrupts the command bench while it times training steps:
// it must end with what was measured. keys are of its document besides.
func BenchInterrupted(t *testing.T, p Program, keys ...string) {
	t.Helper()
	t.Chdir(t.TempDir())
	out, errs := p.Interrupted(t, "bench --preset testing --seconds 100000 --steps 1000000 --json --threads 1 --kernel ref", "errors", "training steps ")
	require.Contains(t, errs, "interrupted after ")
	var d map[string]any
	require.NoError(t, json.Unmarshal([]byte(out), &d))
	require.Equal(t, true, d["interrupted"])
	require.NotNil(t, d["train_step_s"])
	for _, key := range keys {
		require.Contains(t, d, key)
	}
}

// BenchRefuses runs the command bench with flags that cannot work: they are the
// caller's mistakes, found before any work, with a message that has this text.
func BenchRefuses(t *testing.T, p Program, flags map[string]string) {
	t.Helper()
	for given, want := range flags {
		code, out, errs := p.Call(append([]string{"bench"}, strings.Fields(given)...)...)
		require.Equal(t, cli.ExitUsage, code, "%s\n%s", given, errs)
		require.Contains(t, errs, want, given)
		require.Empty(t, out, given)
		require.NotContains(t, errs, "warming up", given)
	}
}
