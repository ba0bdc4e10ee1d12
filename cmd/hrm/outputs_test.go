package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"deeploop/internal/cli"
	"deeploop/internal/command"
	"deeploop/internal/kernel/pick"
	"deeploop/internal/predictions"
)

// toyRun makes a dataset, a run of one step and predictions in the current
// folder.
func toyRun(t *testing.T) {
	t.Helper()
	workFolder(t)
	ok(t, trainTiny+"--steps 1 --run runs/a")
	predict(t, "p.zst", "data/small", right)
}

// Files that are not what a command writes are kept, before any work; its own
// are replaced and that is said.
func TestOutputsNeverReplaceOthersFiles(t *testing.T) {
	toyRun(t)
	require.NoError(t, os.Mkdir("folder.png", 0o755))
	writeFile(t, "empty.png", "")
	for _, c := range []struct {
		line, file string
		says       string // on the second time
	}{
		{"score --predictions p.zst --submission ", "sub.json", "submission: replaced sub.json"},
		{"eval --run runs/a --augmentations 0 --threads 1 --out ", "out.zst", "replaced out.zst: "},
		{"show halo --png ", "a.png", "replaced a.png (1 task)"},
		{"show halo --svg ", "a.svg", "replaced a.svg (1 task)"},
		{"plot runs/a --out ", "curves.png", "curves.png"},
	} {
		out, _ := ok(t, c.line, c.file)
		require.NotContains(t, out, "replaced")
		out, _ = ok(t, c.line, c.file)
		require.Contains(t, out, c.says)
		whole := readFile(t, c.file)

		writeFile(t, c.file, "my notes")
		msg := fails(t, cli.ExitUsage, c.line, c.file)
		require.Contains(t, msg, c.file+" exists and is no ")
		require.Contains(t, msg, "--force")
		require.NotContains(t, msg, "kernel", "refused before any work")
		require.Equal(t, "my notes", readFile(t, c.file))
		ok(t, c.line, c.file, "--force")
		if strings.HasPrefix(c.line, "show") {
			require.Equal(t, whole, readFile(t, c.file))
		}

		// Folders and names below files.
		ext := filepath.Ext(c.file)
		require.NoError(t, os.MkdirAll("folder"+ext, 0o755))
		msg = fails(t, cli.ExitUsage, c.line, "folder"+ext)
		require.Contains(t, msg, "is a folder")
		require.NotContains(t, msg, "kernel")
		msg = fails(t, cli.ExitUsage, c.line, "tasks.txt/x"+ext)
		require.Contains(t, msg, "cannot be written")
		require.NotContains(t, msg, "kernel")

		// Links are followed.
		require.NoError(t, os.MkdirAll("elsewhere", 0o755))
		target := filepath.Join("elsewhere", c.file)
		if err := os.Symlink(target, "link"+ext); err != nil {
			t.Log("links cannot be made here:", err)
			continue
		}
		ok(t, c.line, "link"+ext)
		require.FileExists(t, target)
		info, err := os.Lstat("link" + ext)
		require.NoError(t, err)
		require.NotZero(t, info.Mode()&os.ModeSymlink)
		require.NoError(t, os.Remove("link"+ext))
	}
	out, _ := ok(t, "show halo --png empty.png")
	require.Contains(t, out, "wrote empty.png", "an empty file is nothing to lose")
	require.Contains(t, fails(t, cli.ExitUsage, "plot runs/a --out x.gif"), ".png, .svg or .pdf")
	for _, dir := range []string{".", "elsewhere"} {
		left, err := filepath.Glob(filepath.Join(dir, ".*"))
		require.NoError(t, err)
		require.Empty(t, left, "no temporary file stays")
	}
}

// What makes it another evaluation is in the default name.
func TestEvaluationsHaveNamesOfTheirOwn(t *testing.T) {
	toyRun(t)
	ok(t, "build-data --num-aug 3 --max-grid 10 --seed 7 --tasks tasks.txt --out data/other")
	name := func(args string) string {
		t.Helper()
		out, _ := ok(t, "eval --run runs/a --augmentations 0 --threads 1 "+args)
		line, _, _ := strings.Cut(out, "\n")
		dir, _, found := strings.Cut(strings.TrimPrefix(strings.TrimPrefix(line, "replaced "), "wrote "), "/"+predictions.FileName)
		require.True(t, found, line)
		require.FileExists(t, dir+"/"+predictions.FileName)
		return filepath.Base(dir)
	}
	plain := "step-00000001-raw-aug-0-data-" + openHash(t, "data/small")[:8]
	onRef := plain // without a C compiler that is what everything runs on
	if len(pick.Available()) > 1 {
		onRef += "-ref"
	}
	t.Setenv(command.KernelVariable, "")
	require.Equal(t, plain, name(""))
	require.Equal(t, plain, name("--precision fp32"))
	require.Equal(t, onRef, name("--kernel ref"))
	require.Equal(t, plain+"-bf16", name("--precision bf16"))
	require.Equal(t, plain+"-H3-L1-segments2", name("--H-cycles 3 --L-cycles 1 --halt-max-steps 2"))
	out, _ := ok(t, "eval --run runs/a --augmentations 0 --threads 1")
	require.True(t, strings.HasPrefix(out, "replaced runs/a/eval/"+plain), out)
	t.Setenv(command.KernelVariable, "ref")
	require.Equal(t, onRef, name(""))
}

// The caller's mistakes about paths and values end with code 2.
func TestBadPathsAreTheCallersMistakes(t *testing.T) {
	t.Chdir(t.TempDir())
	writeFile(t, "file", "x")
	for line, want := range map[string]string{
		"build-data --verify file":            "file holds text, expected a dataset",
		"build-data --num-aug 1 --out file/x": "choose another --out",
		"build-data --num-aug 1 --out file":   "is not a folder",
		"train --preset testing --data file":  "file holds text, expected a dataset",
		"eval --run file":                     "file holds text, expected a run",
		"eval --checkpoint file":              "file holds text, expected a run",
		"inspect file":                        "file holds text, expected a run",
		"inspect a b":                         `unexpected argument "b"; see hrm inspect --help`,
		"plot file":                           "file",
		"build-data --num-aug x":              `--num-aug is "x", expected a whole number`,
		"score --ladder 1,x":                  `--ladder is "1,x", expected a whole number, or several`,
	} {
		msg := fails(t, cli.ExitUsage, line)
		require.Contains(t, msg, want, line)
	}
	require.Equal(t, "x", readFile(t, "file"))
}
