package train

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"deeploop/internal/checkpoint"
	"deeploop/internal/cli"
	"deeploop/internal/runlog"
)

func put(t *testing.T, content string, parts ...string) {
	t.Helper()
	path := filepath.Join(parts...)
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
	require.NoError(t, os.WriteFile(path, []byte(content), 0o644))
}

// tree is every file below dir with its content.
func tree(t *testing.T, dir string) map[string]string {
	t.Helper()
	files := map[string]string{}
	require.NoError(t, filepath.WalkDir(dir, func(path string, e os.DirEntry, err error) error {
		if err == nil && !e.IsDir() {
			files[path] = read(t, path)
		}
		return err
	}))
	return files
}

// --force replaces a run, never a folder that only has names of a run in it.
func TestReplaceRefusesForeignFolders(t *testing.T) {
	for _, foreign := range []string{
		"manifest.json", "eval/results.csv", "config.yaml", "checkpoints/step-100/model.safetensors", "checkpoints/index.json",
		MetricsFile, SessionsFile,
	} {
		dir := t.TempDir()
		put(t, "{\"theirs\": true}\n", dir, foreign)
		before := tree(t, dir)
		err := session(bg, dir, Replace, options(2), newToy(2))
		require.Equal(t, cli.ExitUsage, cli.ExitCode(err), foreign)
		require.ErrorContains(t, err, strings.Split(foreign, "/")[0])
		require.Equal(t, before, tree(t, dir))
	}
	require.NoError(t, session(bg, t.TempDir(), Replace, options(2), newToy(2)), "an empty folder is fine")
}

// Each of a run's own files shows what the folder is; foreign checkpoints
// among its own stay.
func TestReplaceTakesAnyEvidenceOfARun(t *testing.T) {
	want := whole(t, 6)
	for _, kept := range []string{MetricsFile, SessionsFile, checkpoint.Folder} {
		dir := undisturbed(t, 3)
		for _, name := range []string{MetricsFile, SessionsFile, checkpoint.Folder} {
			if name != kept {
				require.NoError(t, os.RemoveAll(filepath.Join(dir, name)))
			}
		}
		put(t, "theirs", dir, checkpoint.Folder, "step-100", "model.safetensors")
		require.NoError(t, session(bg, dir, Replace, options(6), newToy(6)), kept)
		requireSame(t, want, dir)
		require.FileExists(t, filepath.Join(dir, checkpoint.Folder, "step-100", "model.safetensors"))
	}
}

// A resumption that starts from the beginning overwrites no metrics of
// something else.
func TestResumeRefusesForeignMetrics(t *testing.T) {
	dir := t.TempDir()
	put(t, "epoch,loss\n1,0.5\n", dir, MetricsFile)
	before := tree(t, dir)
	err := session(bg, dir, Resume, options(2), newToy(2))
	require.Equal(t, cli.ExitUsage, cli.ExitCode(err))
	require.ErrorContains(t, err, MetricsFile)
	require.Equal(t, before, tree(t, dir))

	put(t, "", dir, MetricsFile)
	require.NoError(t, session(bg, dir, Resume, options(2), newToy(2)), "nothing is lost with an empty file")
}

func TestResumeOfAFolderThatDidNotExistWarns(t *testing.T) {
	runs := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(runs, "arc-long"), 0o755))
	var out bytes.Buffer
	o := options(2)
	o.Progress = &runlog.Progress{W: &out, Quiet: true, Now: time.Now}
	require.NoError(t, session(bg, filepath.Join(runs, "arc-lnog"), Resume, o, newToy(2)))
	require.Contains(t, out.String(), "warning: run folder "+filepath.Join(runs, "arc-lnog")+" did not exist")
	require.Contains(t, out.String(), "starting from the beginning (there is "+filepath.Join(runs, "arc-long")+")")
}

// With other data than before the best value says nothing any more.
func TestResetForgetsTheBest(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	o := options(20)
	o.StopAfter, o.Meta.DatasetHash = 8, "old"
	require.NoError(t, session(bg, dir, New, o, newToy(20)))
	require.Equal(t, 7, index(t, dir).Best.Step)

	o.Meta.DatasetHash, o.ResetTaskEmbeddings, o.StopAfter = "new", true, 2
	require.NoError(t, session(bg, dir, Resume, o, newToy(20)))
	require.Nil(t, index(t, dir).Best)
	found, err := checkpoint.Find(dir, checkpoint.BestSaved)
	require.NoError(t, err)
	require.Equal(t, index(t, dir).Last.Name, filepath.Base(found), "the last one stands in")

	o.ResetTaskEmbeddings, o.StopAfter = false, 5
	o.BestIsLow = false // the distance falls, so the forgotten value would win
	require.NoError(t, session(bg, dir, Resume, o, newToy(20)))
	require.Equal(t, 14, index(t, dir).Best.Step)
}

// The same ids with other rows are other data, also without task embeddings.
func TestResumeWithOtherRows(t *testing.T) {
	for name, identity := range map[string]bool{"with ids": true, "without": false} {
		dir := filepath.Join(t.TempDir(), "run")
		o := options(20)
		if !identity {
			o.Meta.Identity = nil
		}
		o.StopAfter = 4
		require.NoError(t, session(bg, dir, New, o, newToy(20)), "of an older program: no hash")
		o.Meta.DatasetHash, o.StopAfter = "hash-one", 1
		require.NoError(t, session(bg, dir, Resume, o, newToy(20)), name)
		before := tree(t, filepath.Join(dir, checkpoint.Folder))

		o.Meta.DatasetHash = "hash-two"
		err := session(bg, dir, Resume, o, newToy(20))
		require.Equal(t, cli.ExitUsage, cli.ExitCode(err))
		for _, part := range []string{"hash-one", "hash-two", "--data", "--reset-task-embeddings"} {
			require.ErrorContains(t, err, part, name)
		}
		require.Equal(t, before, tree(t, filepath.Join(dir, checkpoint.Folder)))

		o.ResetTaskEmbeddings = true
		var out bytes.Buffer
		o.Progress = &runlog.Progress{W: &out, Quiet: true, Now: time.Now}
		y := newToy(20)
		y.pos.Pass = 99
		require.NoError(t, session(bg, dir, Resume, o, y))
		require.Equal(t, 99, y.pos.Pass, "the loader's place is not taken over")
		require.Contains(t, out.String(), "hash-one")
		require.Contains(t, out.String(), "hash-two")
	}
}

// Damage that only reading finds names the other checkpoints too.
func TestFlippedBytesNameTheOtherCheckpoints(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	o := options(20)
	o.Keep, o.StopAfter = 1, 10
	require.NoError(t, session(bg, dir, New, o, newToy(20)))
	path := filepath.Join(dir, checkpoint.Folder, index(t, dir).Last.Name, "weights.safetensors")
	b := []byte(read(t, path))
	b[len(b)-1] ^= 1
	require.NoError(t, os.WriteFile(path, b, 0o644))
	err := session(bg, dir, Resume, o, newToy(20))
	require.Equal(t, cli.ExitUsage, cli.ExitCode(err))
	require.ErrorContains(t, err, "its bytes do not match")
	require.ErrorContains(t, err, "step-00000009")
	require.ErrorContains(t, err, "index.json")
}
