package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"deeploop/internal/command/commandtest"
	"deeploop/internal/goldentest"
)

// smallExample makes lines of examples short: few steps of a tiny model, little
// measuring.
func smallExample(args []string) []string {
	if len(args) == 0 {
		return args
	}
	switch args[0] {
	case "train":
		args = append(args, "--steps=4", "--eval-steps=2", "--checkpoint-interval=1", "--eval-augmentations=0", "--hidden-size=32", "--num-heads=2",
			"--H-layers=1", "--L-layers=1", "--H-cycles=1", "--L-cycles=1", "--global-batch-size=2", "--halt-max-steps=2")
	case "eval":
		args = append(args, "--augmentations=1")
	case "solve":
		args = append(args, "--steps=2", "--votes=2", "--minutes=0.02", "--copies=0", "--quiet")
		if !slices.Contains(args, "--checkpoint") {
			args = append(args, "--hidden-size=32", "--num-heads=2")
		}
	case "bench":
		args = append(args, "--seconds=0.01", "--hidden-size=32", "--num-heads=2", "--layers=1", "--seq-len=9", "--batch-size=1")
	case "build-data":
		if !slices.Contains(args, "--verify") {
			args = append(args, "--force", "--max-grid=10")
		}
	}
	return args
}

// Every example in the help works as it is written.
func TestExamplesWork(t *testing.T) {
	root := newRootCmd(nil)
	commandtest.Examples{
		Root:  root,
		Order: []string{"build-data", "train", "eval", "score", "inspect", "plot", "show", "bench", ""},
		Before: map[string]func(t *testing.T){
			"build-data": func(t *testing.T) {
				writeTasks(t, "arc-agi-1/training", toy("007bbfb7", 0, true))
				writeTasks(t, "arc-agi-1/evaluation", toy("00576224", 1, true))
				writeTasks(t, "concept-arc/corpus/Above", toy("Above1", 2, true, true, true))
				writeTasks(t, ".", toy("my-task", 3, false))
			},
			"eval": func(t *testing.T) { commandtest.CopyCheckpoint(t, "runs/arc1", "step-00000500") },
			"sweep": func(t *testing.T) {
				ok(t, "build-data --num-aug 1 --out data/small")
				commandtest.Write(t, "experiment.yaml", "train: --preset testing --data data/small\nmetrics: [lm_loss]\nsettings: [{name: a}]\n")
			},
			"inspect": func(t *testing.T) { makeDemo(t) },
			"plot": func(t *testing.T) {
				ok(t, "train --preset testing --steps 4 --eval-steps 2 --eval-augmentations 0 --run runs/plain --placement postnorm")
				ok(t, "train --preset testing --steps 4 --eval-steps 2 --eval-augmentations 0 --run runs/deeploop")
			},
		},
		// These need the published checkpoint and its predictions (import_test.go and
		// torch tests have others), or serve until they are stopped (view_test.go).
		Line: func(t *testing.T, line string) bool {
			return strings.HasPrefix(line, "hrm import ") || strings.HasPrefix(line, "hrm view") || strings.Contains(line, "_all_preds")
		},
	}.Run(t)
}

// makeDemo makes what make demo makes, in a moment.
func makeDemo(t *testing.T) {
	ok(t, "build-data --num-aug 1 --out data/demo")
	ok(t, "train --preset testing --steps 2 --data data/demo --run runs/demo")
}

// The commands of getting started work one after the other, as they are written,
// from a clean checkout with the tasks of ARC beside it.
func TestGettingStartedWorks(t *testing.T) {
	root := goldentest.Root()
	page, err := os.ReadFile(filepath.Join(root, "docs", "getting-started.md"))
	require.NoError(t, err)
	dir := filepath.Join(t.TempDir(), "checkout")
	require.NoError(t, os.MkdirAll(dir, 0o755))
	t.Chdir(dir)
	require.NoError(t, os.CopyFS(filepath.Join("arc", "samples"), os.DirFS(filepath.Join(root, "arc", "samples"))))
	writeTasks(t, "../ARC-AGI/data/training", toy("007bbfb7", 0, true))
	writeTasks(t, "../ARC-AGI/data/evaluation", toy("00576224", 1, true))
	writeTasks(t, "../ConceptARC/corpus/Above", toy("Above1", 2, true, true, true))
	makeDemo(t)
	commandtest.Examples{
		Root: newRootCmd(nil),
		Line: func(t *testing.T, line string) bool { return strings.HasPrefix(line, "hrm view") },
	}.Page(t, string(page), "cp")
}
