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
