package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"

	"deeploop/hrm"
	"deeploop/internal/cli"
	"deeploop/internal/command"
)

// A training says beforehand what memory it takes, and warns where that is more
// than is free, with a setting that brings it down.
func TestTrainTellsItsMemory(t *testing.T) {
	workFolder(t)
	train := func(free uint64, more string) string {
		t.Helper()
		o := trainOptions{TrainOptions: command.TrainOptions[hrm.TrainConfig]{Settings: newTrainSettings()}}
		fs := pflag.NewFlagSet("train", pflag.ContinueOnError)
		o.addFlags(fs)
		require.NoError(t, fs.Parse(strings.Fields(strings.TrimPrefix(trainTiny, "train ")+"--kernel ref --steps 1 --run runs/a --force "+more)))
		var errs bytes.Buffer
		tr := newTraining(&o)
		tr.FreeBytes = func() uint64 { return free }
		require.NoError(t, tr.Run(t.Context(), &cli.Streams{Out: &bytes.Buffer{}, Err: &errs}, &o.TrainOptions))
		return errs.String()
	}
	errs := train(1<<40, "")
	require.Regexp(t, `a step is one segment of 8 rows of \d+ cells, and training takes at least [\d.]+ MB of memory`, errs)
	require.NotContains(t, errs, "warning")
	require.NotContains(t, train(0, ""), "warning", "unknown")
	require.Regexp(t, `warning: training needs at least 1\d(\.\d)? MB of memory and 8(\.0)? MB are free on this machine, so it may be stopped or very slow; --global-batch-size 8 takes [\d.]+ MB`,
		train(8e6, "--epochs 1000 --eval-interval 1000 --global-batch-size 16"))
	require.Contains(t, train(1000, ""), "are free on this machine, so it may be stopped or very slow; a smaller --hidden-size or fewer layers take less")
}
