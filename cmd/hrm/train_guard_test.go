package main

import (
	"bufio"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"deeploop/internal/cli"
)

// A signal while the model is built ends the program as one during training
// does, and leaves no folder.
func TestTrainInterruptedWhileSettingUp(t *testing.T) {
	workFolder(t)
	c := hrmProgram.Process(trainTiny + "--hidden-size 256 --num-heads 4 --expansion 4 --H-layers 4 --L-layers 4 --steps 100000 --run runs/early")
	pipe, err := c.StderrPipe()
	require.NoError(t, err)
	require.NoError(t, c.Start())
	errs := bufio.NewReader(pipe)
	first, err := errs.ReadString('\n') // the kernel; dataset, folder and model follow
	require.NoError(t, err, first)
	require.NoError(t, c.Process.Signal(syscall.SIGTERM))
	rest, err := io.ReadAll(errs)
	require.NoError(t, err)
	var exit *exec.ExitError
	require.ErrorAs(t, c.Wait(), &exit)
	require.Equal(t, cli.ExitInterrupted, exit.ExitCode(), string(rest))
	require.Contains(t, string(rest), "terminated: stopping before the training begins")
	require.Contains(t, string(rest), "interrupted before the first step")
	require.NoDirExists(t, "runs/early")
}

// What cannot fit is refused before anything is built.
func TestTrainAndEvalCheckMemory(t *testing.T) {
	workFolder(t)
	msg := fails(t, cli.ExitUsage, trainTiny+"--steps 5 --hidden-size 65536 --num-heads 64 --expansion 1000 --H-layers 1000 --run runs/huge")
	require.Contains(t, msg, "GB of memory, this machine has")
	require.NoDirExists(t, "runs/huge")
	ok(t, trainTiny+"--steps 1 --run runs/a")
	ok(t, "eval --run runs/a --batch 1000000000") // no more than the rows there are
}

// An interrupted evaluation leaves nothing, not even an empty folder.
func TestEvalInterruptedLeavesNothing(t *testing.T) {
	workFolder(t)
	ok(t, trainTiny+"--steps 1 --run runs/a")
	c := hrmProgram.Process("eval --run runs/a --halt-max-steps 1000000 --out out/deep/p.zst")
	pipe, err := c.StderrPipe()
	require.NoError(t, err)
	require.NoError(t, c.Start())
	errs, text := bufio.NewReader(pipe), ""
	for !strings.Contains(text, "segments each") {
		more, err := errs.ReadString('\n')
		require.NoError(t, err, text)
		text += more
	}
	require.Eventually(t, func() bool { _, err := os.Stat("out/deep"); return err == nil }, 20*time.Second, time.Millisecond)
	require.NoError(t, c.Process.Signal(os.Interrupt))
	rest, err := io.ReadAll(errs)
	require.NoError(t, err)
	var exit *exec.ExitError
	require.ErrorAs(t, c.Wait(), &exit)
	require.Equal(t, cli.ExitInterrupted, exit.ExitCode(), text+string(rest))
	require.Contains(t, string(rest), "nothing was written")
	require.NoDirExists(t, "out")
}

// --force removes a run, not a folder that merely has names of one.
func TestTrainForceAsksForEvidence(t *testing.T) {
	workFolder(t)
	require.NoError(t, os.MkdirAll("papers/eval", 0o755))
	require.NoError(t, os.WriteFile("papers/eval/results.csv", []byte("1"), 0o644))
	require.NoError(t, os.WriteFile("papers/config.yaml", []byte("a: 1"), 0o644))
	require.Contains(t, fails(t, cli.ExitUsage, trainTiny+"--steps 1 --force --run papers"), "holds no run")
	require.Equal(t, "1", readFile(t, "papers/eval/results.csv"))
	require.Equal(t, "a: 1", readFile(t, "papers/config.yaml"))
}

// Damage of any kind is bad input and comes with advice that works.
func TestTrainResumeOfADamagedCheckpoint(t *testing.T) {
	for name, damage := range map[string]func(t *testing.T, last string){
		"it does not exist":     func(t *testing.T, last string) { require.NoError(t, os.RemoveAll(last)) },
		"state.json is missing": func(t *testing.T, last string) { require.NoError(t, os.Remove(filepath.Join(last, "state.json"))) },
		"cut short": func(t *testing.T, last string) {
			require.NoError(t, os.Truncate(filepath.Join(last, "weights.safetensors"), 9))
		},
		"do not match": func(t *testing.T, last string) {
			path := filepath.Join(last, "optimizer.safetensors")
			b, err := os.ReadFile(path)
			require.NoError(t, err)
			b[len(b)-1] ^= 64
			require.NoError(t, os.WriteFile(path, b, 0o644))
		},
	} {
		t.Run(name, func(t *testing.T) {
			workFolder(t)
			ok(t, trainTiny+"--steps 4 --checkpoint-interval 1 --keep 2 --eval-steps 100 --run runs/a --stop-after 3")
			last := filepath.Join("runs", "a", "checkpoints", "step-00000003")
			damage(t, last)
			msg := fails(t, cli.ExitUsage, "train --run runs/a --resume")
			require.Contains(t, msg, name)
			require.Contains(t, msg, "other checkpoints of this run: "+filepath.Join("runs", "a", "checkpoints", "step-00000001"))
			index := filepath.Join("runs", "a", "checkpoints", "index.json")
			require.Contains(t, msg, "remove "+last+" and "+index)
			require.NoError(t, os.RemoveAll(last))
			require.NoError(t, os.Remove(index))
			_, errs := ok(t, "train --run runs/a --resume")
			require.Contains(t, errs, "at step 2 of 4")
		})
	}
}

// The same identifiers with other rows: training refuses, evaluation warns,
// also without task embeddings.
func TestOtherRowsAreNoticed(t *testing.T) {
	workFolder(t)
	for name, first := range map[string]string{"one": "1", "two": "3"} {
		require.NoError(t, os.WriteFile(name+"_challenges.json", []byte(
			`{"b":{"train":[{"input":[[`+first+`,2]],"output":[[2,1]]}],"test":[{"input":[[3,4]],"output":[[4,3]]}]}}`), 0o644))
		ok(t, "build-data --input "+name+"_challenges.json --num-aug 0 --max-grid 4 --out data/"+name)
	}
	hash := func(name string) string { return openHash(t, "data/"+name) }
	for _, embeddings := range []string{"", "--puzzle-emb-ndim 0 "} {
		run := "runs/r" + strings.ReplaceAll(embeddings, " ", "_")
		ok(t, "train --preset testing --data data/one --precision fp32 --steps 8 --eval-steps 2 --global-batch-size 1 "+embeddings+"--stop-after 3 --run", run)
		_, errs := ok(t, "eval --run", run)
		require.Contains(t, errs, "step 2,", "the best one")
		msg := fails(t, cli.ExitUsage, "train --resume --data data/two --run", run)
		require.Contains(t, msg, hash("one"))
		require.Contains(t, msg, hash("two"))
		require.Contains(t, msg, "--reset-task-embeddings")
		_, errs = ok(t, "eval --data data/two --run", run)
		require.Contains(t, errs, "warning: checkpoint")
		require.Contains(t, errs, hash("one"))
		require.Contains(t, errs, hash("two"))
		_, errs = ok(t, "eval --run", run)
		require.NotContains(t, errs, "warning: checkpoint")
		_, errs = ok(t, "train --resume --reset-task-embeddings --stop-after 1 --data data/two --run", run)
		require.Contains(t, errs, "other rows")
		_, errs = ok(t, "eval --run", run)
		require.Contains(t, errs, "step 4,", "the best one of the other data is forgotten")
	}
}

func TestResumeOfAMistypedRunWarns(t *testing.T) {
	workFolder(t)
	ok(t, trainTiny+"--steps 1 --run runs/arc-long")
	_, errs := ok(t, trainTiny+"--steps 1 --quiet --resume --run runs/arc-lnog")
	require.Contains(t, errs, "warning: run folder runs/arc-lnog did not exist")
	require.Contains(t, errs, "there is runs/arc-long")
}
