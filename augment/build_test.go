package augment

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"deeploop/arc"
)

// writeTasks writes files, given as path -> JSON, and returns the folder.
func writeTasks(t *testing.T, order []string, files map[string]string) string {
	dir := t.TempDir()
	for _, name := range order {
		path := filepath.Join(dir, filepath.FromSlash(name))
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(files[name]), 0o644))
	}
	return dir
}

func keys(files map[string]string) []string {
	var names []string
	for n := range files {
		names = append(names, n)
	}
	return names
}

func load(t *testing.T, files map[string]string) *arc.Corpus {
	c, err := arc.Load(writeTasks(t, keys(files), files))
	require.NoError(t, err)
	return c
}

// taskJSON is a random task.
func taskJSON(r *rand.Rand, train, test int) string {
	task := arc.Task{}
	for range train {
		task.Train = append(task.Train, arc.Pair{Input: randomGrid(r, 6, 10), Output: randomGrid(r, 6, 10)})
	}
	for range test {
		task.Test = append(task.Test, arc.Pair{Input: randomGrid(r, 6, 10), Output: randomGrid(r, 6, 10)})
	}
	return string(task.JSON())
}

func someTasks(n int) map[string]string {
	r := rand.New(rand.NewPCG(7, 8))
	files := map[string]string{}
	for i := range n {
		files[fmt.Sprintf("evaluation/e%d.json", i)] = taskJSON(r, 1+i%4, 1+i%2)
		files[fmt.Sprintf("training/t%d.json", i)] = taskJSON(r, 3, 1+i%3) // T25: one pair, or three tests
	}
	return files
}

func small(numAug int) Settings {
	return Settings{NumAug: numAug, Seed: 1, MaxGrid: 8, DestOrder: TrainFirst}
}

func build(t *testing.T, c *arc.Corpus, s Settings) (string, *Manifest) {
	out := filepath.Join(t.TempDir(), "set")
	m, err := Build(context.Background(), c, out, BuildOptions{Settings: s})
	require.NoError(t, err)
	return out, m
}

// tree returns all files below a folder.
func tree(t *testing.T, dir string) map[string]string {
	files := map[string]string{}
	require.NoError(t, filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := os.ReadFile(path)
		rel, _ := filepath.Rel(dir, path)
		files[rel] = string(b)
		return err
	}))
	return files
}

// T15: same seed, same bytes, whatever the order the files were created in
// and the folder they are in.
func TestT15SameSeedSameBytes(t *testing.T) {
	files := someTasks(6)
	files["training/odd.json"] = `{"comment": "told with its path", ` + files["training/t0.json"][1:]
	names := keys(files)
	reversed := make([]string, len(names))
	for i, n := range names {
		reversed[len(names)-1-i] = n
	}
	var outs []map[string]string
	for _, order := range [][]string{names, reversed} {
		c, err := arc.Load(writeTasks(t, order, files))
		require.NoError(t, err)
		out, _ := build(t, c, small(4))
		outs = append(outs, tree(t, out))
	}
	require.Equal(t, outs[0], outs[1])
	require.Len(t, outs[0], 15)
	require.Contains(t, outs[0][ManifestName], `: training/odd.json`, "warnings are kept")
	other := small(4)
	other.Seed = 2
	_, a := build(t, load(t, files), small(4))
	_, b := build(t, load(t, files), other)
	require.NotEqual(t, a.DatasetHash, b.DatasetHash)
}

// T13: a test input that is also a demonstration's input stays, with a warning.
func TestT13TestInputInTrain(t *testing.T) {
	pair := `{"input": [[1, 2]], "output": [[2, 1]]}`
	c := load(t, map[string]string{"Center/m.json": `{"train": [` + pair + `], "test": [` + pair + `]}`})
	c.Tasks[0].HoldOut = false
	_, m := build(t, c, small(3))
	require.Len(t, m.TestInputInTrain, 1)
	require.Contains(t, strings.Join(m.Warnings, "\n"), "test input also in train")
	require.Equal(t, 8, m.Counts.Train.Examples, "both pairs are kept")
	require.Empty(t, m.Leaks)
}

// T14: a held-out pair that is trained on elsewhere is a leak; the build goes
// on and says so.
func TestT14Leak(t *testing.T) {
	pair, other := `{"input": [[1, 2]], "output": [[2, 1]]}`, `{"input": [[5]], "output": [[6]]}`
	c := load(t, map[string]string{
		"evaluation/e.json": `{"train": [` + other + `], "test": [` + other + `, ` + pair + `, {"input": [[1, 2]]}]}`,
		"training/t.json":   `{"train": [{"input": [[3]], "output": [[4]]}], "test": [` + pair + `]}`,
	})
	_, m := build(t, c, small(2))
	require.Len(t, m.Leaks, 2)
	require.Equal(t, "e test[0] = e train[0]", fmt.Sprintf("%s = %s", m.Leaks[0].Test, m.Leaks[0].Train))
	require.Equal(t, "e test[1] = t test[0]", fmt.Sprintf("%s = %s", m.Leaks[1].Test, m.Leaks[1].Train))
	require.Contains(t, strings.Join(m.Warnings, "\n"), "LEAK: 2 of 3")
}

// T14: one id in two folders with different content is told, both tasks are
// kept, and rows of the test split say which task they are.
func TestT14SameIDInTwoFolders(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 9))
	c := load(t, map[string]string{
		"a/evaluation/x.json": taskJSON(r, 2, 1),
		"b/evaluation/x.json": taskJSON(r, 2, 2),
		"b/training/x.json":   taskJSON(r, 2, 1),
	})
	require.Len(t, c.Tasks, 3)
	out, m := build(t, c, small(2))
	require.Len(t, m.SharedIDs, 1)
	require.Len(t, m.SharedIDs[0].Files, 3)
	require.False(t, m.SharedIDs[0].Identical)
	require.Contains(t, strings.Join(m.Warnings, "\n"), "different content")
	require.Equal(t, 3, m.Counts.Train.Groups)
	require.Equal(t, 1+3*3-2, m.Counts.Identifiers, "the unaugmented puzzles share a number, as in the reference")
	d, err := OpenDataset(out)
	require.NoError(t, err)
	defer d.Close()
	checkGroundTruth(t, d)
	p := testPuzzles(t, d)
	first, second := p.Tasks[0].Identifiers, p.Tasks[1].Identifiers
	require.Equal(t, first[0], second[0])
	require.Len(t, union(first, second), len(first)+len(second)-1)
}

// checkGroundTruth compares every row of the test split with the grids and
// transforms of test_puzzles.json.
func checkGroundTruth(t *testing.T, d *Dataset) {
	p := testPuzzles(t, d)
	side := d.Manifest.Settings.MaxGrid
	want := make([]uint8, side*side)
	row, puzzle := 0, 0
	for _, task := range p.Tasks {
		for k, a := range task.Augmentations {
			require.Equal(t, task.Identifiers[k], d.Test.PuzzleIdentifiers[puzzle])
			for _, pair := range task.Tests {
				require.Equal(t, puzzle, d.Test.PuzzleOf(row))
				in, err := d.Test.Inputs.Row(row, nil)
				require.NoError(t, err)
				Place(want, side, a.Apply(pair.Input), 0, 0)
				require.Equal(t, want, in)
				out, err := d.Test.Labels.Row(row, nil)
				require.NoError(t, err)
				Place(want, side, a.Apply(pair.Output), 0, 0)
				require.Equal(t, want, out)
				row++
			}
			puzzle++
		}
	}
	require.Equal(t, d.Test.Examples(), row)
	require.Equal(t, d.Test.Puzzles(), puzzle)
	require.Len(t, p.Tasks, d.Test.Groups())
}

func testPuzzles(t *testing.T, d *Dataset) *TestPuzzles {
	t.Helper()
	p, err := ReadTestPuzzles(filepath.Join(d.Dir, TestPuzzlesName))
	require.NoError(t, err)
	return p
}

func union(lists ...[]int32) map[int32]bool {
	all := map[int32]bool{}
	for _, l := range lists {
		for _, v := range l {
			all[v] = true
		}
	}
	return all
}

// T4: identifiers are told apart by separate fields, whatever a task is called.
func TestT4AnyStem(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 9))
	files := map[string]string{}
	for _, id := range []string{"my_task_1", "x|||t3|||0123456789", "a_t1_0213456789", "a", "_", "ü b"} {
		files["evaluation/"+id+".json"] = taskJSON(r, 2, 2)
	}
	out, m := build(t, load(t, files), small(5))
	require.Equal(t, 1+6*6, m.Counts.Identifiers)
	d, err := OpenDataset(out)
	require.NoError(t, err)
	defer d.Close()
	checkGroundTruth(t, d)
	names, err := d.Identifiers()
	require.NoError(t, err)
	var used [][]int32
	for _, task := range testPuzzles(t, d).Tasks {
		require.Contains(t, files, "evaluation/"+task.ID+".json")
		require.Len(t, task.Augmentations, 6)
		require.Equal(t, Original(), task.Augmentations[0])
		require.Equal(t, task.ID, names[task.Identifiers[0]])
		for k := 1; k < len(task.Identifiers); k++ {
			require.Equal(t, task.ID+task.Augmentations[k].Suffix(), names[task.Identifiers[k]])
		}
		used = append(used, task.Identifiers)
	}
	require.Len(t, union(used...), 36)
}

// Unlabelled test inputs are predicted like others; their labels are padding.
func TestUnlabelledTests(t *testing.T) {
	files := map[string]string{
		"evaluation/u.json": `{"train": [{"input": [[1]], "output": [[2]]}], "test": [{"input": [[3, 3]]}, {"input": [[4]], "output": [[5]]}]}`,
		"training/v.json":   `{"train": [{"input": [[1]], "output": [[2]]}], "test": [{"input": [[3, 3]]}]}`,
	}
	out, m := build(t, load(t, files), small(2))
	require.Equal(t, 2, m.Counts.UnlabelledTests)
	require.Equal(t, 2, m.Counts.TestPairs)
	require.Equal(t, 6, m.Counts.Train.Examples, "nothing is learned from an input without output")
	d, err := OpenDataset(out)
	require.NoError(t, err)
	defer d.Close()
	require.Equal(t, 6, d.Test.Examples())
	checkGroundTruth(t, d)
	p := testPuzzles(t, d)
	require.False(t, p.Tasks[0].Tests[0].Labelled())
	require.True(t, p.Tasks[0].Tests[1].Labelled())
	row, err := d.Test.Labels.Row(0, nil)
	require.NoError(t, err)
	require.Equal(t, make([]uint8, 64), row)
}

// A dataset without held-out pairs has an empty test split.
func TestEmptyTestSplit(t *testing.T) {
	files := someTasks(3)
	for n := range files {
		if strings.HasPrefix(n, "evaluation") {
			delete(files, n)
		}
	}
	for _, compress := range []string{"", Zstd} {
		s := small(2)
		s.Compress = compress
		out, m := build(t, load(t, files), s)
		require.Zero(t, m.Counts.Test)
		d, err := OpenDataset(out)
		require.NoError(t, err)
		require.Zero(t, d.Test.Examples())
		require.Zero(t, d.Test.Groups())
		require.Empty(t, testPuzzles(t, d).Tasks)
		require.NoError(t, d.Close())
		problems, err := Verify(context.Background(), out, nil)
		require.NoError(t, err)
		require.Empty(t, problems)
	}
}

func TestSmallCanvasSkipsLargeTasks(t *testing.T) {
	files := map[string]string{
		"training/fits.json": `{"train": [{"input": [[1, 2]], "output": [[2]]}], "test": [{"input": [[3]], "output": [[3]]}]}`,
		"training/wide.json": `{"train": [{"input": [[1, 2]], "output": [[2]]}], "test": [{"input": [[3]], "output": [[3, 3, 3]]}]}`,
	}
	s := small(3)
	s.MaxGrid = 2
	_, m := build(t, load(t, files), s)
	require.Equal(t, []SkippedTask{{"wide", "wide.json", 1, 3}}, m.SkippedTasks)
	require.Equal(t, 1, m.Counts.Tasks)
	require.Contains(t, strings.Join(m.Warnings, "\n"), "skipped 1 task with")

	// Leaving tasks out is like not having them.
	all := someTasks(5)
	some := map[string]string{"evaluation/e1.json": all["evaluation/e1.json"], "training/t4.json": all["training/t4.json"]}
	out := filepath.Join(t.TempDir(), "set")
	a, err := Build(context.Background(), load(t, all), out, BuildOptions{Settings: small(3), Tasks: []string{"t4", "e1", "t4"}})
	require.NoError(t, err)
	_, b := build(t, load(t, some), small(3))
	require.Equal(t, b.DatasetHash, a.DatasetHash)
}

func TestBadRequestsWriteNothing(t *testing.T) {
	c := load(t, someTasks(2))
	parent := t.TempDir()
	out := filepath.Join(parent, "deep", "set")
	with := func(change func(*BuildOptions)) BuildOptions {
		o := BuildOptions{Settings: small(2)}
		change(&o)
		return o
	}
	for name, bad := range map[string]struct {
		o    BuildOptions
		want string
	}{
		"negative": {with(func(o *BuildOptions) { o.Settings.NumAug = -1 }), "num-aug"},
		"huge":     {with(func(o *BuildOptions) { o.Settings.NumAug = 1 << 40 }), "num-aug"},
		"zero":     {with(func(o *BuildOptions) { o.Settings.MaxGrid = 0 }), "max-grid"},
		"31":       {with(func(o *BuildOptions) { o.Settings.MaxGrid = 31 }), "max-grid"},
		"none fit": {with(func(o *BuildOptions) { o.Settings.MaxGrid = 1 }), "none of 4 tasks fits a 1x1 canvas"},
		"unknown":  {with(func(o *BuildOptions) { o.Tasks = []string{"e0", "zz", "yy"} }), "yy, zz"},
		"no tasks": {with(func(o *BuildOptions) { o.Tasks = []string{} }), "empty"},
		"compress": {with(func(o *BuildOptions) { o.Settings.Compress = "gzip" }), "gzip"},
		"order":    {with(func(o *BuildOptions) { o.Settings.DestOrder = "" }), "dest-order"},
	} {
		_, err := Build(context.Background(), c, out, bad.o)
		require.ErrorContains(t, err, bad.want, name)
		var in *InputError
		require.ErrorAs(t, err, &in, name)
	}
	_, err := Build(context.Background(), &arc.Corpus{}, out, BuildOptions{Settings: small(1)})
	require.ErrorContains(t, err, "no tasks")
	_, err = Build(context.Background(), c, out, with(func(o *BuildOptions) {
		o.DiskFree = func(dir string) (uint64, error) {
			require.Equal(t, parent, dir, "the folder that exists")
			return 1000, nil
		}
	}))
	require.ErrorContains(t, err, "needs 1.1 MB and the disk has 0.0 MB free")
	_, err = newPlan(context.Background(), [][]*arc.Task{{&c.Tasks[0]}}, small(5), 3)
	require.ErrorContains(t, err, "more than 3 examples")
	entries, err := os.ReadDir(parent)
	require.NoError(t, err)
	require.Empty(t, entries)
}

func TestCancelledBuildLeavesNothing(t *testing.T) {
	c := load(t, someTasks(12))
	parent := t.TempDir()
	out := filepath.Join(parent, "set")
	_, first := build(t, c, small(1))
	require.NoError(t, os.Rename(mustBuild(t, c, small(1)), out))
	for stop := range 4 { // before the first chunk, and at later ones
		ctx, cancel := context.WithCancel(context.Background())
		n := 0
		if stop == 0 {
			cancel()
		}
		_, err := Build(ctx, c, out, BuildOptions{Settings: small(60), Force: true, Progress: func(done, total int64) {
			require.LessOrEqual(t, done, total)
			if n++; n >= stop {
				cancel()
			}
		}})
		cancel()
		require.ErrorIs(t, err, context.Canceled)
		entries, err := os.ReadDir(parent)
		require.NoError(t, err)
		require.Len(t, entries, 1, "only the old dataset")
		m, err := ReadManifest(out)
		require.NoError(t, err)
		require.Equal(t, first.DatasetHash, m.DatasetHash)
	}
}

func mustBuild(t *testing.T, c *arc.Corpus, s Settings) string {
	out, _ := build(t, c, s)
	return out
}

func TestProgressReachesTheTotal(t *testing.T) {
	var last, end int64
	_, err := Build(context.Background(), load(t, someTasks(3)), filepath.Join(t.TempDir(), "set"), BuildOptions{
		Settings: small(9),
		Progress: func(done, total int64) {
			require.Greater(t, done, last)
			last, end = done, total
		},
	})
	require.NoError(t, err)
	require.Equal(t, end, last)
}

// A write that fails leaves nothing and names the file.
func TestFailedWrite(t *testing.T) {
	c := load(t, someTasks(2))
	p, err := newPlan(context.Background(), [][]*arc.Task{{&c.Tasks[0]}}, small(1), 1000)
	require.NoError(t, err)
	f, err := createBulk(filepath.Join(t.TempDir(), "x"))
	require.NoError(t, err)
	require.NoError(t, f.f.Close()) // as good as a full disk
	s := &sink{f: f, content: sha256.New()}
	o := &output{progress: func(int64) {}, files: map[string]FileInfo{}}
	err = o.close(s, "train/all__inputs.npy", o.stream(context.Background(), s, p.split("train").examples(), newRenderer(p, p.split("train"), false)))
	require.ErrorContains(t, err, "train/all__inputs.npy")
	require.Empty(t, o.files)
	require.NotErrorIs(t, firstCause([]error{context.Canceled, errors.New("disk")}), context.Canceled)
}
