//go:build unix

package main

import (
	"io"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// Pipes stay pipes and get what a file would.
func TestOutputsGoThroughPipes(t *testing.T) {
	toyRun(t)
	through := func(line, pipe string) []byte {
		t.Helper()
		require.NoError(t, unix.Mkfifo(pipe, 0o600))
		read := make(chan []byte, 1)
		go func() {
			f, err := os.Open(pipe)
			if err != nil {
				read <- nil
				return
			}
			defer f.Close()
			b, _ := io.ReadAll(f)
			read <- b
		}()
		ok(t, line, pipe)
		info, err := os.Lstat(pipe)
		require.NoError(t, err)
		require.NotZero(t, info.Mode()&os.ModeNamedPipe)
		select {
		case b := <-read:
			return b
		case <-time.After(20 * time.Second):
			t.Fatal("nothing came through the pipe")
		}
		return nil
	}
	for _, c := range [][2]string{
		{"score --predictions p.zst --submission", "sub.json"},
		{"eval --run runs/a --augmentations 0 --threads 1 --out", "out.zst"},
		{"show halo --png", "a.png"},
		{"show halo --svg", "a.svg"},
	} {
		ok(t, c[0], c[1])
		require.Equal(t, readFile(t, c[1]), string(through(c[0], "pipe-"+c[1])))
	}
	require.Contains(t, string(through("plot runs/a --out", "pipe.svg")), "<svg")
	for _, line := range []string{"score --predictions", "score --truth data/small --answers", "show"} {
		require.Contains(t, fails(t, 2, line, "pipe.svg"), "regular file")
	}
}

// Results that cannot be printed are a failure, and a reader who has seen enough
// is none.
func TestUnwritableOutput(t *testing.T) {
	toyRun(t)
	ok(t, "eval --run runs/a --augmentations 0 --threads 1 --after 1 --out after.zst")
	hrmProgram.UnwritableOutput(t,
		"", "--help", "--version", "help train", "train --help", "completion bash",
		"build-data --num-aug 0 --tasks tasks.txt --out data/other --force",
		"show", "show halo", "show halo --png a.png --force",
		"inspect runs/a", "inspect runs/a --digest",
		"score --predictions p.zst", "score --predictions p.zst --json", "score --predictions p.zst --per-task",
		"score --predictions after.zst --curve c.png",
		"bench --preset testing --seconds 0.01 --threads 1 --kernel ref", "bench --preset testing --seconds 0.01 --threads 1 --kernel ref --json",
		"plot runs/a", "report --run runs/a --out r.html --force", "export --run runs/a --out exported --force",
		"eval --run runs/a --augmentations 0 --threads 1 --force --out out.zst",
		trainTiny+"--steps 1 --run runs/b --force",
		solveTiny+"halo overlap --steps 1 --models 1", solveTiny+"halo --steps 1 --models 1 --json",
	)
}
