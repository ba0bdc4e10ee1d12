package main

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"deeploop/internal/profile"

	"deeploop/internal/command"
)

// A profile changes nothing that is computed.
func TestProfileOfTrainingAndEvaluation(t *testing.T) {
	workFolder(t)
	ok(t, trainTiny+"--steps 4 --run runs/plain")
	out, _ := ok(t, trainTiny+"--steps 4 --run runs/a --profile")
	require.Equal(t, digest(t, "runs/plain"), digest(t, "runs/a"))
	require.Contains(t, out, "profile: mean of 3 training steps", "the first is left out")
	require.Contains(t, out, "AdamATan2")
	var r profile.Report
	require.NoError(t, json.Unmarshal([]byte(readFile(t, "runs/a", command.ProfileFile)), &r))
	require.Equal(t, 3, r.Units)
	require.Positive(t, r.RestShare)
	require.NoFileExists(t, "runs/plain/"+command.ProfileFile)

	ok(t, "eval --run runs/plain --augmentations 0 --threads 1 --out plain.zst")
	out, _ = ok(t, "eval --run runs/a --augmentations 0 --threads 1 --out a.zst --profile")
	require.Contains(t, out, "profile: mean of 4 evaluation segments")
	require.NotContains(t, out, "AdamATan2")
	ok(t, trainTiny+"--steps 1 --run runs/a --profile --force")
	require.Contains(t, readFile(t, "runs/a", command.ProfileFile), `"units": 1,`)
	out, _ = ok(t, trainTiny+"--steps 1 --run runs/a --resume --profile")
	require.Contains(t, out, "no training step was finished")
}

func TestProfileOfAnInterruptedTraining(t *testing.T) {
	workFolder(t)
	out, _ := interruptedTraining(t, "--profile")
	require.Contains(t, out, "profile: mean of ")
	require.FileExists(t, "runs/long/"+command.ProfileFile)
}
