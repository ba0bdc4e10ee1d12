package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"deeploop/augment"
	"deeploop/internal/cli"
	"deeploop/internal/command"
)

// buildData runs hrm build-data with arguments.
func buildData(args ...string) (code int, out, errs string) {
	var o, e bytes.Buffer
	code = run(append([]string{"build-data"}, args...), &cli.Streams{In: strings.NewReader(""), Out: &o, Err: &e})
	return code, o.String(), e.String()
}

func TestBuildDataSamples(t *testing.T) {
	t.Chdir(t.TempDir())
	code, out, errs := buildData("--num-aug", "3")
	require.Equal(t, cli.ExitOK, code, errs)
	dir := filepath.Join("data", "arc-aug-3")
	m, err := augment.ReadManifest(dir)
	require.NoError(t, err)
	require.Contains(t, out, m.DatasetHash)
	require.Equal(t, augment.Settings{NumAug: 3, Seed: 42, MaxGrid: sampleMaxGrid, DestOrder: augment.TrainFirst}, m.Settings)
	require.Empty(t, m.SkippedTasks, "the samples fit their canvas")
	newest, err := command.NewestFolder(command.DataFolder, augment.ManifestName, nil)
	require.NoError(t, err)
	require.Equal(t, dir, newest)

	code, _, errs = buildData("--num-aug", "3")
	require.Equal(t, cli.ExitUsage, code)
	require.Contains(t, errs, "--force")
	code, _, errs = buildData("--num-aug", "3", "--force", "--compress", "zstd")
	require.Equal(t, cli.ExitOK, code, errs)
	again, err := augment.ReadManifest(dir)
	require.NoError(t, err)
	require.Equal(t, m.DatasetHash, again.DatasetHash, "compression changes no content")

	code, out, _ = buildData("--verify", dir)
	require.Equal(t, cli.ExitOK, code)
	require.Contains(t, out, "whole")
	require.NoError(t, os.Remove(filepath.Join(dir, "train", "dataset.json")))
	code, out, errs = buildData("--verify", dir)
	require.Equal(t, cli.ExitFailure, code)
	require.Contains(t, out, "train/dataset.json: missing")
	require.Contains(t, errs, "1 of its files")
	code, _, errs = buildData("--verify", ".")
	require.Equal(t, cli.ExitUsage, code)
	require.Contains(t, errs, "manifest.json")
}

func TestBuildDataMistakes(t *testing.T) {
	t.Chdir(t.TempDir())
	require.NoError(t, os.WriteFile("tasks.txt", []byte("halo\n\nno-such-task\r\n"), 0o644))
	require.NoError(t, os.WriteFile("none.txt", []byte("\n"), 0o644))
	require.NoError(t, os.WriteFile("bad.json", []byte(`{"train": [{"input": [[1,2],[3]], "output": [[1]]}], "test": []}`), 0o644))
	require.NoError(t, os.Mkdir("empty", 0o755))
	for want, args := range map[string][]string{
		"num-aug is -1":   {"--num-aug", "-1"},
		"max-grid is 0":   {"--max-grid", "0"},
		"max-grid is 31":  {"--max-grid", "31"},
		"canvas":          {"--max-grid", "1"},
		"no-such-task":    {"--tasks", "tasks.txt"},
		"list of tasks":   {"--tasks", "none.txt"},
		"gone.txt":        {"--tasks", "gone.txt"},
		"--tasks is":      {"--tasks", ""},
		"--out is empty":  {"--out", ""},
		"gone":            {"--input", "gone"},
		"bad.json":        {"--input", "bad.json"},
		"empty":           {"--input", "empty"},
		"gzip":            {"--compress", "gzip"},
		"seed":            {"--seed", "-4"},
		"dest-order":      {"--dest-order", "any"},
		"unexpected":      {"data"},
		"go with --force": {"--verify", "data", "--force"},
	} {
		code, out, errs := buildData(args...)
		require.Equal(t, cli.ExitUsage, code, "%v: %s", args, errs)
		require.Contains(t, errs, want, "%v", args)
		require.Empty(t, out)
		require.NoDirExists(t, "data")
	}
}

func TestMain(m *testing.M) { hrmProgram.Main(m, smallExample) }

// A build that is killed or interrupted at any moment leaves the old dataset,
// or the new one, whole, and nothing that stands in the way of the next build.
func TestBuildDataKilled(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Log("signals cannot be sent here")
		return
	}
	dir := t.TempDir()
	build := func(numAug string) *exec.Cmd {
		return hrmProgram.Process("build-data --max-grid 10 --force --num-aug", numAug, "--out", filepath.Join(dir, "set"))
	}
	out, err := build("5").CombinedOutput()
	require.NoError(t, err, string(out))
	for i, wait := range []time.Duration{5, 30, 60, 90, 140, 200} {
		c := build("60")
		var said bytes.Buffer
		c.Stderr = &said
		require.NoError(t, c.Start())
		time.Sleep(wait * time.Millisecond)
		if i%2 == 0 {
			require.NoError(t, c.Process.Kill())
		} else {
			_ = c.Process.Signal(os.Interrupt) // it may have ended
		}
		_ = c.Wait()
		code, _, errs := buildData("--verify", filepath.Join(dir, "set"))
		require.Equal(t, cli.ExitOK, code, errs)
		if code := c.ProcessState.ExitCode(); i%2 == 1 && code != cli.ExitOK && said.Len() > 0 {
			require.Equal(t, cli.ExitInterrupted, code, said.String())
		}
	}
	out, err = build("2").CombinedOutput()
	require.NoError(t, err, string(out))
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, entries, 1, "what dead builds left is gone")
	m, err := augment.ReadManifest(filepath.Join(dir, "set"))
	require.NoError(t, err)
	require.Equal(t, 2, m.Settings.NumAug)
}
