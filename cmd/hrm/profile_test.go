package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"deeploop/internal/cli"
	"deeploop/internal/profile"
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
	require.NoError(t, json.Unmarshal([]byte(readFile(t, "runs/a", profileFile)), &r))
	require.Equal(t, 3, r.Units)
	require.Positive(t, r.RestShare)
	require.NoFileExists(t, "runs/plain/"+profileFile)

	ok(t, "eval --run runs/plain --augmentations 0 --threads 1 --out plain.zst")
	out, _ = ok(t, "eval --run runs/a --augmentations 0 --threads 1 --out a.zst --profile")
	require.Contains(t, out, "profile: mean of 4 evaluation segments")
	require.NotContains(t, out, "AdamATan2")
	ok(t, trainTiny+"--steps 1 --run runs/a --profile --force")
	require.Contains(t, readFile(t, "runs/a", profileFile), `"units": 1,`)
	out, _ = ok(t, trainTiny+"--steps 1 --run runs/a --resume --profile")
	require.Contains(t, out, "no training step was finished")
}

func TestProfileOfAnInterruptedTraining(t *testing.T) {
	workFolder(t)
	c := exec.Command(os.Args[0])
	line := trainTiny + "--steps 100000 --eval-steps 100000 --run runs/long --profile"
	c.Env = append(os.Environ(), "DEEPLOOP_TEST_HRM="+strings.Join(strings.Fields(line), "\n"))
	var out strings.Builder
	c.Stdout = &out
	require.NoError(t, c.Start())
	require.Eventually(t, func() bool {
		b, err := os.ReadFile("runs/long/metrics.jsonl")
		return err == nil && len(b) > 0
	}, 20*time.Second, 5*time.Millisecond)
	require.NoError(t, c.Process.Signal(os.Interrupt))
	var exit *exec.ExitError
	require.ErrorAs(t, c.Wait(), &exit)
	require.Equal(t, cli.ExitInterrupted, exit.ExitCode())
	require.Contains(t, out.String(), "profile: mean of ")
	require.FileExists(t, "runs/long/"+profileFile)
}
