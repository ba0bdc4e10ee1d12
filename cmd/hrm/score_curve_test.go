package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"deeploop/arc"
	"deeploop/internal/cli"
	"deeploop/internal/predictions"
)

// Copies that come first answer wrongly: more copies outvote them.
func TestCurveByCopies(t *testing.T) {
	t.Chdir(t.TempDir())
	writeTasks(t, "tasks", toy("a", 1, true), toy("b", 2, true))
	build(t, "data", 4, "tasks")
	predict(t, "p.safetensors.zst", "data", func(task arc.Task, copy, _ int, label []uint8) []uint8 {
		if task.ID == "a" || copy >= 2 {
			return label
		}
		return make([]uint8, len(label))
	})
	doc := scored(t, "--predictions", "p.safetensors.zst", "--curve", "c.png", "--ladder", "1,2")
	require.Empty(t, doc.Curve.Segments[1:], "no file of fewer segments")
	got := map[int][]float64{}
	for _, p := range doc.Curve.Copies {
		require.Equal(t, 2*(p.N+1), p.Votes)
		require.Len(t, p.Pass, 2)
		got[p.N] = []float64{p.Pass[0].AllTests.Solved, p.Pass[1].AllTests.Solved}
	}
	require.Equal(t, map[int][]float64{0: {1, 1}, 1: {1, 1}, 3: {1, 2}, 4: {2, 2}}, got)
	last := doc.Curve.Copies[len(doc.Curve.Copies)-1]
	require.Equal(t, doc.Ladder, last.Pass, "all copies are the score itself")
	require.FileExists(t, "c.png")
	_, out, _ := score("--predictions", "p.safetensors.zst", "--curve", "c.svg")
	require.Contains(t, out, "augmented copies")
	require.Contains(t, out, "picture: c.svg")
	refused(t, []string{"--predictions", "p.safetensors.zst", "--curve", "c.gif"}, ".png, .svg or .pdf")
	refused(t, []string{"--answers", "x", "--truth", "y", "--curve", "c.png"}, "--curve needs predictions")
	require.NoError(t, os.WriteFile("mine.png", []byte("a text"), 0o644))
	refused(t, []string{"--predictions", "p.safetensors.zst", "--curve", "mine.png"}, "mine.png")
}

// What --after writes is what an evaluation of so many segments writes, and
// the main file does not change.
func TestEvalAfterFewerSegments(t *testing.T) {
	toyRun(t)
	eval := "eval --run runs/a --threads 1 --kernel ref --precision fp32 --quiet --halt-max-steps "
	ok(t, eval+"3 --out all/p.safetensors.zst --after 1,2,3")
	for _, n := range []string{"1", "2", "3"} {
		ok(t, eval+n+" --out one/"+n+".safetensors.zst")
		file := map[string]string{"1": "p-after-1", "2": "p-after-2", "3": "p"}[n]
		want, err := os.ReadFile("one/" + n + ".safetensors.zst")
		require.NoError(t, err)
		got, err := os.ReadFile("all/" + file + ".safetensors.zst")
		require.NoError(t, err)
		require.Equal(t, want, got, n)
	}
	require.NoFileExists(t, "all/p-after-3.safetensors.zst")
	points := func(dir string) (n []int) {
		for _, p := range scored(t, "--predictions", dir+"/p.safetensors.zst", "--curve", "c.png").Curve.Segments {
			n = append(n, p.N)
		}
		return n
	}
	require.Equal(t, []int{1, 2, 3}, points("all"))
	ok(t, eval+"3 --augmentations 0 --out all/p.safetensors.zst")
	require.Equal(t, []int{3}, points("all"), "the others are of another evaluation")
	require.Contains(t, fails(t, cli.ExitUsage, eval+"3 --after 4"), "1 to 3")
	require.NoError(t, os.MkdirAll("else", 0o755))
	require.NoError(t, os.WriteFile(predictions.AfterName(filepath.Join("else", "p.safetensors"), 1), []byte("mine"), 0o644))
	require.Contains(t, fails(t, cli.ExitUsage, eval+"3 --after 1 --out else/p.safetensors"), "p-after-1.safetensors")
	require.NoFileExists(t, "else/p.safetensors")
}
