package commandtest

import (
	"encoding/json"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"deeploop/internal/checkpoint"
)

// SweepKilled kills a sweep (SIGKILL) in the working folder whose only training
// has these flags and a schedule that takes hours: the training must save and
// end.
func SweepKilled(t *testing.T, flags string) {
	t.Helper()
	Write(t, "s.yaml", "train: "+flags+" --steps 100000000 --eval-steps 0 --checkpoint-interval 0\nmetrics: [loss]\nsettings: [{name: a}]\n")
	t.Setenv(asProgram, asWritten)
	sweep := exec.Command(os.Args[0], "sweep", "s.yaml")
	require.NoError(t, sweep.Start())
	defer func() { _ = sweep.Process.Kill() }()
	const run = "runs/s/a-seed0"
	Appears(t, run+"/metrics.jsonl", `"step":2,`)
	var owner checkpoint.Owner
	require.NoError(t, json.Unmarshal([]byte(Read(t, run, checkpoint.LockFile)), &owner))
	require.NotEqual(t, sweep.Process.Pid, owner.PID)
	require.NoError(t, sweep.Process.Kill())
	_ = sweep.Wait()
	ended := func() bool {
		_, err := os.Stat(run + "/" + checkpoint.LockFile)
		return os.IsNotExist(err)
	}
	for begun := time.Now(); !ended(); time.Sleep(5 * time.Millisecond) {
		if time.Since(begun) > 30*time.Second {
			if p, err := os.FindProcess(owner.PID); err == nil {
				_ = p.Kill() // the training of this test
			}
			t.Fatal("the training goes on without its sweep")
		}
	}
	Appears(t, run+".log", "continue with: ")
	x, err := (&checkpoint.Store{Dir: run + "/" + checkpoint.Folder}).Index()
	require.NoError(t, err)
	require.GreaterOrEqual(t, x.Last.Step, 2, "saved where it stopped")
}
