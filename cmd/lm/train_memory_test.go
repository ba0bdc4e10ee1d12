package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"

	"deeploop/internal/cli"
)

// A training that needs more memory than is free warns with a setting that
// brings it down.
func TestTrainWarnsOfMemory(t *testing.T) {
	t.Chdir(t.TempDir())
	train := func(free uint64, more string) string {
		t.Helper()
		o := &trainOptions{Settings: newTrainSettings()}
		fs := pflag.NewFlagSet("train", pflag.ContinueOnError)
		addTrainFlags(fs, o)
		require.NoError(t, fs.Parse(strings.Fields("--preset testing --steps 1 --threads 1 --kernel ref --precision fp32 --run runs/a --force "+more)))
		var errs bytes.Buffer
		tr := *training
		tr.FreeBytes = func() uint64 { return free }
		require.NoError(t, tr.Run(t.Context(), &cli.Streams{Out: &bytes.Buffer{}, Err: &errs}, o))
		return errs.String()
	}
	require.NotContains(t, train(1<<40, ""), "warning")
	require.Regexp(t, `warning: training needs at least [\d.]+ MB of memory and 1(\.0)? MB are free on this machine, .*; --batch-size (\d+) --grad-accum \d+ takes [\d.]+ (MB|kB), --checkpoint-loops less too`,
		train(1e6, "--batch-size 16"))
	require.Contains(t, train(1000, "--checkpoint-loops"), "a smaller --hidden-size, --context or --layers takes less\n")
}
