package arc

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// aTask returns a task file whose grids hold v, so that two can differ.
func aTask(v string) string {
	return `{"train": [{"input": [[` + v + `]], "output": [[1, 2]]}], "test": [{"input": [[1], [` + v + `]], "output": [[3]]}]}`
}

// tree writes files below a new folder; a name that ends in / makes a folder.
func tree(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	names := make([]string, 0, len(files))
	for name := range files {
		names = append(names, name)
	}
	// Backwards by name, so that no order of creation helps the reader.
	sort.Sort(sort.Reverse(sort.StringSlice(names)))
	for _, name := range names {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if strings.HasSuffix(name, "/") {
			require.NoError(t, os.MkdirAll(path, 0o755))
			continue
		}
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(files[name]), 0o644))
	}
	return dir
}

// load loads paths below dir.
func load(t *testing.T, dir string, paths ...string) *Corpus {
	t.Helper()
	for i, p := range paths {
		paths[i] = filepath.Join(dir, p)
	}
	c, err := Load(paths...)
	require.NoError(t, err)
	return c
}

// refused loads a path below dir, which must be bad input, and returns the
// message without the folder.
func refused(t *testing.T, dir, path string) string {
	t.Helper()
	c, err := Load(filepath.Join(dir, path))
	require.Error(t, err)
	require.Nil(t, c)
	var bad interface{ BadInput() bool }
	require.True(t, errors.As(err, &bad) && bad.BadInput(), "%v is not marked as bad input", err)
	return strings.ReplaceAll(filepath.ToSlash(err.Error()), filepath.ToSlash(dir)+"/", "")
}

// listing is "split/id" of each task, with a star where tests are held out.
func listing(c *Corpus) []string {
	var out []string
	for _, t := range c.Tasks {
		s := t.Split + "/" + t.ID
		if t.HoldOut {
			s += "*"
		}
		out = append(out, s)
	}
	return out
}

func TestLoadLayouts(t *testing.T) {
	x, y := aTask("4"), aTask("5")
	combined := `{"q2": ` + x + `, "q1": ` + y + `}`
	for _, tc := range []struct {
		name  string
		files map[string]string
		path  string
		want  []string
	}{
		{"ARC folders, evaluation first, names as bytes",
			map[string]string{"training/b.json": x, "training/a10.json": y, "training/a1.json": x, "training/a-b.json": y, "training/B.json": x, "evaluation/z.json": y, "README.md": ""}, "",
			[]string{"evaluation/z*", "training/B", "training/a-b", "training/a1", "training/a10", "training/b"}},
		{"data level, other folders beside it",
			map[string]string{"data/training/a.json": x, "data/evaluation/b.json": y, "apps/settings.json": "{}", ".git/x.json": "no"}, "",
			[]string{"evaluation/b*", "training/a"}},
		{"one of the folders only",
			map[string]string{"training/a.json": x}, "", []string{"training/a"}},
		{"ConceptARC checkout",
			map[string]string{"corpus/Copy/Copy2.json": x, "corpus/Copy/Copy10.json": y, "corpus/AboveBelow/AboveBelow1.json": x, "MinimalTasks/CopyMinimal.json": y, "other/notes.json": "{}"}, "",
			[]string{"MinimalTasks/CopyMinimal", "AboveBelow/AboveBelow1", "Copy/Copy10", "Copy/Copy2"}},
		{"ConceptARC corpus folder",
			map[string]string{"corpus/Copy/Copy2.json": x, "corpus/Order/Order1.json": y}, "corpus",
			[]string{"Copy/Copy2", "Order/Order1"}},
		{"flat folder", map[string]string{"mine/b.json": x, "mine/a.JSON": y, "mine/.hidden.json": "no"}, "mine",
			[]string{"mine/a*", "mine/b*"}},
		{"flat folder called evaluation", map[string]string{"evaluation/b.json": x}, "evaluation", []string{"evaluation/b*"}},
		{"flat folder called training", map[string]string{"training/b.json": x}, "training", []string{"training/b"}},
		{"single file", map[string]string{"training/my_task_1.json": x}, "training/my_task_1.json", []string{"/my_task_1*"}},
		{"combined files, key order",
			map[string]string{"arc-agi_training_challenges.json": combined, "arc-agi_evaluation2-challenges.json": combined, "sample_submission.json": "[]"}, "",
			[]string{"evaluation2/q2*", "evaluation2/q1*", "training/q2*", "training/q1*"}},
		{"one combined file by content", map[string]string{"all.json": combined}, "all.json", []string{"all/q2*", "all/q1*"}},
		{"combined files below other folders", map[string]string{"kaggle/combined/arc-agi_concept_challenges.json": combined}, "",
			[]string{"concept/q2*", "concept/q1*"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			dir := tree(t, tc.files)
			c := load(t, dir, tc.path)
			require.Equal(t, tc.want, listing(c))
			end := 0
			for _, g := range c.Groups {
				require.Equal(t, end, g.Start)
				end = g.End
				for _, task := range c.Tasks[g.Start:g.End] {
					require.Equal(t, g.Name, task.Split)
				}
			}
			require.Equal(t, len(c.Tasks), end)
		})
	}
}

func TestLoadSources(t *testing.T) {
	dir := tree(t, map[string]string{"b.json": aTask("4"), "sub/a.json": aTask("5")})
	c := load(t, dir, "sub/a.json", "b.json")
	sum := sha256.Sum256([]byte(aTask("4")))
	require.Equal(t, []string{"/a*", "/b*"}, listing(c))
	require.Equal(t, Source{File: filepath.Join(dir, "b.json"), SHA256: hex.EncodeToString(sum[:])}, c.Sources[1])
	require.Equal(t, c.Sources[0].File, c.Tasks[0].File)
	require.Empty(t, c.Warnings)
}

func TestLoadReadsAFileOnce(t *testing.T) {
	dir := tree(t, map[string]string{"tasks/a.json": aTask("4"), "tasks/b.json": aTask("5")})
	require.NoError(t, os.Symlink(filepath.Join(dir, "tasks"), filepath.Join(dir, "link")))
	c := load(t, dir, "tasks/a.json", "tasks", "link")
	require.Equal(t, []string{"/a*", "tasks/b*"}, listing(c))
	require.Len(t, c.Warnings, 1)
	require.Contains(t, c.Warnings[0], "named more than once")
}

func TestLoadKeepsKeyOrder(t *testing.T) {
	dir := tree(t, map[string]string{
		"a.json": `{"test": [{"input": [[1]]}], "train": [{"output": [[3]], "input": [[2]]}]}`,
		"b.json": aTask("1"),
	})
	c := load(t, dir, ".")
	require.True(t, c.Tasks[0].TestFirst)
	require.False(t, c.Tasks[1].TestFirst)
	require.Equal(t, Grid{1, 1, []uint8{2}}, c.Tasks[0].Train[0].Input)
	require.Equal(t, Grid{1, 1, []uint8{3}}, c.Tasks[0].Train[0].Output)
}

func TestLoadUnlabelledTests(t *testing.T) {
	dir := tree(t, map[string]string{
		"a.json": `{"train": [{"input": [[1]], "output": [[2]]}], "test": [{"input": [[1]]}, {"input": [[3]], "output": null}, {"input": [[4]], "output": [[5]]}]}`,
	})
	test := load(t, dir, "a.json").Tasks[0].Test
	require.Len(t, test, 3)
	require.False(t, test[0].Labelled())
	require.False(t, test[1].Labelled())
	require.True(t, test[2].Labelled())
}

func TestLoadWarnsAboutWhatItPassesOver(t *testing.T) {
	dir := tree(t, map[string]string{
		"arc/training/a.json": aTask("1"), "arc/evaluation/": "", "arc/stray.json": "not read",
		"kaggle/x_challenges.json": `{"q": ` + aTask("2") + `}`, "kaggle/y_solutions.json": "{}", "kaggle/sample_submission.json": "[]",
		"checkout/data/b.json": aTask("3"), "checkout/mine/c.json": aTask("4"), "checkout/apps/index.html": "",
		"deep/1/2/3/4/d.json": aTask("5"), "deep/1/2/3/4/5/e.json": aTask("6"),
	})
	c := load(t, dir, "arc", "kaggle", "checkout", "deep")
	require.Equal(t, []string{"training/a", "x/q*", "data/b", "4/d"}, listing(c))
	all := strings.ReplaceAll(strings.Join(c.Warnings, "\n"), dir+string(filepath.Separator), "")
	require.Equal(t, strings.Join([]string{
		"has no task files: arc/evaluation",
		"not read, lies beside folders of tasks: arc/stray.json",
		"not read, lies beside *_challenges.json: kaggle/sample_submission.json",
		"not read, has no *_challenges.json beside it: kaggle/y_solutions.json",
		"not read, lies beside data/, corpus/ or MinimalTasks/: checkout/mine",
		"not read, lies more than 4 folders deep: deep/1/2/3/4/5",
	}, "\n"), filepath.ToSlash(all))
}

// Datasets, runs and the work of hrm solve beside tasks are passed over.
func TestLoadPassesOverWhatThisProgramMade(t *testing.T) {
	files := map[string]string{
		"a.json": aTask("1"), "b.json": aTask("2"),
		"data/arc-aug-1/train/dataset.json": "{}", "data/arc-aug-1/identifiers.json": "[]",
		"runs/x/metrics.jsonl": "", "runs/x/sweep.json": "{}", "runs/y/checkpoints/index.json": "{}",
		"runs/solve/0a1b/settings.json": `{"version": 1, "settings": {}}`, "runs/solve/0a1b/a-0a1b.json": "{}",
	}
	dir := tree(t, files)
	c := load(t, dir, ".")
	require.Len(t, c.Tasks, 2)
	require.True(t, c.Tasks[0].HoldOut, "of a flat folder")
	require.Empty(t, c.Warnings)
	c, err := LoadSome(dir)
	require.NoError(t, err)
	require.Len(t, c.Tasks, 2)
	require.Empty(t, c.Warnings)
	require.Contains(t, refused(t, dir, "runs"), "has no task files")
	files["runs/solve/0a1b/settings.json"] = `{"version": 1}`
	require.Contains(t, refused(t, tree(t, files), "."), "has neither")
}

func TestLoadRefusesFolders(t *testing.T) {
	dir := tree(t, map[string]string{"empty/": "", "text/a.txt": "x", "deep/1/2/3/4/5/a.json": aTask("1")})
	require.Contains(t, refused(t, dir, "empty"), "empty: is an empty folder, expected task files")
	require.Contains(t, refused(t, dir, "text"), "text: has no task files (*.json), expected")
	require.Contains(t, refused(t, dir, "deep"), "deep: has no task files")
	require.Contains(t, refused(t, dir, "none"), "none: does not exist, expected a task file")
	require.NoError(t, os.Symlink(filepath.Join(dir, "nowhere"), filepath.Join(dir, "text", "b.json")))
	require.Contains(t, refused(t, dir, "text"), "text/b.json: cannot be read")
	_, err := Load()
	require.ErrorContains(t, err, "no input given")
	_, err = Load(os.DevNull)
	require.ErrorContains(t, err, "is not a regular file")
}

// LoadSome leaves out what is no task inside folders, with a warning, and needs
// one task at least.
func TestLoadSome(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644))
	}
	write("a.json", `{"train": [`)
	_, err := LoadSome(dir)
	require.ErrorContains(t, err, "a.json")
	write("b.json", `{"train": [{"input": [[1]], "output": [[2]]}], "test": [{"input": [[3]]}]}`)
	_, err = Load(dir)
	require.Error(t, err)
	c, err := LoadSome(dir)
	require.NoError(t, err)
	require.Len(t, c.Tasks, 1)
	require.Contains(t, strings.Join(c.Warnings, "\n"), "a.json")
	_, err = LoadSome(filepath.Join(dir, "a.json"))
	require.Error(t, err, "named by the caller")
}

// LoadSome takes tasks beside folders of tasks, and folders beside those of a
// checkout; Load leaves them to a warning.
func TestLoadSomeTakesAllBelow(t *testing.T) {
	dir := tree(t, map[string]string{
		"b.json": aTask("1"), "notes.json": "{}", "data/a.json": aTask("2"), "mine/c.json": aTask("3"), "mine/sub/b.json": aTask("4"),
	})
	c, err := LoadSome(dir)
	require.NoError(t, err)
	base := filepath.Base(dir)
	require.Equal(t, []string{base + "/b", "data/a", "mine/c", "sub/b"}, listing(c))
	require.Len(t, c.Warnings, 1, "what two tasks of one name mean is the caller's to say")
	require.Contains(t, c.Warnings[0], "notes.json")
	require.Len(t, c.Clashes(), 1)

	c = load(t, dir, "")
	require.Equal(t, []string{"data/a"}, listing(c))
	require.Contains(t, strings.Join(c.Warnings, "\n"), "b.json")
	require.Contains(t, strings.Join(c.Warnings, "\n"), "mine")
}
