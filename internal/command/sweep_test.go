package command

import (
	"math"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"deeploop/internal/runlog"
)

// Metrics that are no finite numbers are kept as they are.
func TestSweepKeepsNumbersThatAreNotFinite(t *testing.T) {
	r := sweepRun{dir: t.TempDir(), args: []string{"train"}}
	want := map[string]runlog.Number{"loss": runlog.Number(math.Inf(1)), "lr": 0.5}
	require.NoError(t, (&sweepResult{Args: r.args, Values: want}).save(r))
	require.FileExists(t, filepath.Join(r.dir, sweepFile))
	got := readResult(r, []string{"loss", "lr"}, nil)
	require.NotNil(t, got)
	require.Equal(t, want, got.Values)
	v, found := at(map[string]any{"a": []any{"NaN"}}, "a.0")
	require.True(t, found)
	require.True(t, math.IsNaN(v))
	for _, doc := range []any{"text", nil, true, map[string]any{}} {
		_, found = at(doc, "")
		require.False(t, found)
		_, found = at(map[string]any{"a": doc}, "a")
		require.False(t, found)
	}
}
