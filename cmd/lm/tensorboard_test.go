package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"deeploop/internal/cli"
	"deeploop/internal/command/commandtest"
	"deeploop/internal/runlog"
	"deeploop/internal/tensorboard/tensorboardtest"
)

// shownOf is what TensorBoard must show of a run: the lines of its metrics.
func shownOf(lines []runlog.Line) map[string]map[int]float32 {
	shown := map[string]map[int]float32{}
	for _, l := range lines {
		for name, v := range l.Values {
			tag := l.Event + "/" + name
			if shown[tag] == nil {
				shown[tag] = map[int]float32{}
			}
			shown[tag][l.Step] = float32(v)
		}
	}
	return shown
}

// Event files show what metrics.jsonl holds: of a run that is stopped and
// resumed, of one that gets them late, and of one that is replaced.
func TestTensorBoardShowsTheMetrics(t *testing.T) {
	t.Chdir(t.TempDir())
	args := trainTiny + "--steps 12 --checkpoint-interval 5 --eval-steps 4 --eval-tokens 300 "
	same := func(run, dir string) {
		t.Helper()
		require.Equal(t, shownOf(metrics(t, run)), tensorboardtest.Shown(t, dir))
	}
	_, errs := ok(t, args+"--run runs/a --tensorboard tb --stop-after 6")
	require.Contains(t, errs, "event files in "+filepath.Join("tb", "a")+": tensorboard --logdir tb")
	require.Contains(t, errs, "--run runs/a --resume --tensorboard tb")
	same("runs/a", "tb/a")
	require.NoError(t, os.RemoveAll("runs/a/checkpoints/"+newestStep(t, "runs/a"))) // as if killed before it
	require.NoError(t, os.Remove("runs/a/checkpoints/index.json"))
	ok(t, "train --run runs/a --resume --tensorboard tb")
	same("runs/a", "tb/a")
	require.Contains(t, shownOf(metrics(t, "runs/a")), "eval/loss")

	ok(t, args+"--run elsewhere/b --stop-after 6")
	ok(t, "train --run elsewhere/b --resume --tensorboard tb") // all of its curves
	same("elsewhere/b", "tb/b")
	ok(t, args+"--run elsewhere/b --force --tensorboard tb --lr 0.01 --steps 4")
	shown := tensorboardtest.Shown(t, "tb/b")
	require.Len(t, shown["train/loss"], 4, "nothing of the run that was replaced")
	_, errs = ok(t, args+"--run other/b --tensorboard tb --steps 1")
	require.Contains(t, errs, "warning: "+filepath.Join("tb", "b")+" has event files of another run")

	require.Equal(t, digest(t, "runs/a"), func() string {
		ok(t, args+"--run runs/plain")
		return digest(t, "runs/plain")
	}(), "the same model")
}

// newestStep is the folder of a run's last checkpoint.
func newestStep(t *testing.T, run string) string {
	t.Helper()
	steps, err := filepath.Glob(filepath.Join(run, "checkpoints", "step-*"))
	require.NoError(t, err)
	require.NotEmpty(t, steps)
	return filepath.Base(steps[len(steps)-1])
}

func TestTensorBoardRefusesBeforeTheTraining(t *testing.T) {
	t.Chdir(t.TempDir())
	commandtest.Write(t, "file", "")
	for _, line := range []string{"--tensorboard file", "--tensorboard file/deeper"} {
		errs := fails(t, cli.ExitUsage, trainTiny+"--run runs/a "+line)
		require.Contains(t, errs, "--tensorboard: file")
		require.NoDirExists(t, "runs")
	}
}
