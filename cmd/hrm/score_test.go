package main

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"deeploop/arc"
	"deeploop/augment"
	"deeploop/internal/goldentest"
	"deeploop/internal/predictions"
)

// run of hrm score.
func score(args ...string) (code int, out, errs string) {
	return runHRM(append([]string{"score"}, args...)...)
}

// scored runs hrm score --json and returns the document.
func scored(t *testing.T, args ...string) (doc report) {
	t.Helper()
	code, out, errs := score(append(args, "--json")...)
	require.Zero(t, code, errs)
	dec := json.NewDecoder(strings.NewReader(out))
	require.NoError(t, dec.Decode(&doc))
	require.False(t, dec.More(), "one document, nothing else")
	return doc
}

// refused requires exit code 2, nothing on stdout, and a message with parts.
func refused(t *testing.T, args []string, parts ...string) {
	t.Helper()
	code, out, errs := score(args...)
	require.Equal(t, 2, code, errs)
	require.Empty(t, out)
	for _, p := range parts {
		require.Contains(t, errs, p)
	}
}

// toy makes a task whose test outputs are its inputs recoloured; labelled[i]
// says whether test i has its output.
func toy(id string, seed int, labelled ...bool) arc.Task {
	g := func(n int) arc.Grid {
		g := arc.NewGrid(2+n%2, 3)
		for i := range g.Cells {
			g.Cells[i] = uint8((i*i + n*(i+1) + seed) % 10)
		}
		return g
	}
	t := arc.Task{ID: id, Train: []arc.Pair{{Input: g(21), Output: g(22)}}}
	for i, l := range labelled {
		p := arc.Pair{Input: g(2 * i)}
		if l {
			p.Output = g(2*i + 1)
		}
		t.Test = append(t.Test, p)
	}
	return t
}

func writeTasks(t *testing.T, dir string, tasks ...arc.Task) {
	t.Helper()
	require.NoError(t, os.MkdirAll(dir, 0o755))
	for _, task := range tasks {
		require.NoError(t, os.WriteFile(filepath.Join(dir, task.ID+".json"), task.JSON(), 0o644))
	}
}

// build makes a dataset of task folders.
func build(t *testing.T, out string, numAug int, folders ...string) {
	t.Helper()
	c, err := arc.Load(folders...)
	require.NoError(t, err)
	_, err = augment.Build(context.Background(), c, out, augment.BuildOptions{
		Settings: augment.Settings{NumAug: numAug, Seed: 42, MaxGrid: 10, DestOrder: augment.TrainFirst}})
	require.NoError(t, err)
}

// guess is what a made-up model answers in a row: the right tokens or others.
type guess func(task arc.Task, copy, test int, label []uint8) []uint8

func right(_ arc.Task, _, _ int, label []uint8) []uint8 { return label }

func blank(_ arc.Task, _, _ int, label []uint8) []uint8 { return make([]uint8, len(label)) }

// predict writes predictions over the test split of a dataset. Rows that the
// guess answers with nil are left out.
func predict(t *testing.T, path, dataset string, g guess) {
	t.Helper()
	d, err := augment.OpenDataset(dataset)
	require.NoError(t, err)
	defer d.Close()
	puzzles, err := augment.ReadTestPuzzles(filepath.Join(dataset, augment.TestPuzzlesName))
	require.NoError(t, err)
	var preds [][]uint8
	var kept []int
	var tests []int32 // of the kept rows
	row := 0
	for _, task := range puzzles.Tasks {
		for cp := range task.Identifiers {
			for test := range task.Tests {
				label, err := d.Test.Labels.Row(row, nil)
				require.NoError(t, err)
				if p := g(arc.Task{ID: task.ID, Test: task.Tests}, cp, test, label); p != nil {
					preds, kept, tests = append(preds, p), append(kept, row), append(tests, int32(test))
				}
				row++
			}
		}
	}
	require.Equal(t, d.Test.Examples(), row)
	w, err := predictions.Create(path, predictions.Meta{Dataset: dataset, DatasetHash: d.Manifest.DatasetHash,
		Step: 7, Weights: "ema", HaltSteps: 4, Augmentations: -1}, len(kept), d.Test.SeqLen)
	require.NoError(t, err)
	defer w.Abort()
	for i, row := range kept {
		require.NoError(t, w.Append(preds[i], []float32{.5}, []int32{d.Test.PuzzleIdentifiers[d.Test.PuzzleOf(row)]}, tests[i:i+1]))
	}
	require.NoError(t, w.Close(func(i int) (inputs, labels []uint8, err error) {
		if inputs, err = d.Test.Inputs.Row(kept[i], nil); err == nil {
			labels, err = d.Test.Labels.Row(kept[i], nil)
		}
		return inputs, labels, err
	}))
}

func percents(s scoreReport) [3]float64 {
	var p [3]float64
	for i, r := range []ratioReport{s.AllTests, s.TaskMean, s.Outputs} {
		if r.Percent != nil {
			p[i] = *r.Percent
		}
	}
	return p
}

// A whole small evaluation, with everything at its default.
func TestScoreNewestPredictions(t *testing.T) {
	t.Chdir(t.TempDir())
	refused(t, nil, "below runs", "hrm eval")

	writeTasks(t, "tasks/evaluation", toy("a", 0, true, true), toy("b", 3, true))
	build(t, "data/set", 5, "tasks")
	predict(t, "runs/one/eval/step1/"+predictions.FileName, "data/set", blank)
	predict(t, "runs/two/eval/step1/"+predictions.FileName, "data/set", right)
	old := time.Now().Add(-time.Hour)
	require.NoError(t, os.Chtimes("runs/one/eval/step1/"+predictions.FileName, old, old))

	code, out, errs := score("--submission", "sub.json")
	require.Zero(t, code, errs)
	require.Contains(t, errs, "two")
	require.Contains(t, out, "pass@1000   100.00% (2/2)")
	require.Contains(t, out, "2 of 2 tasks, 3 of 3 test inputs")
	require.Contains(t, out, "ema weights of step 7, 4 passes a row")

	doc := scored(t)
	require.Equal(t, [3]float64{100, 100, 100}, percents(doc.Headline))
	require.Equal(t, 18, doc.Votes.Total)
	require.Equal(t, []int{1, 2, 10, 100, 1000}, []int{doc.Ladder[0].K, doc.Ladder[1].K, doc.Ladder[2].K, doc.Ladder[3].K, doc.Ladder[4].K})

	doc = scored(t, "--predictions", "runs/one", "--ladder", "3,1", "--votes", "4", "--per-task")
	require.Equal(t, [3]float64{0, 0, 0}, percents(doc.Headline))
	require.Equal(t, 4, doc.Headline.K)
	require.Len(t, doc.Ladder, 2)
	require.Len(t, doc.Tasks, 2)
	require.True(t, doc.Tasks[0].Tests[0].Answered, "a 0x0 answer is an answer")

	// The submission scores as the predictions do.
	for _, truth := range []string{"tasks/evaluation", "data/set"} {
		doc = scored(t, "--answers", "sub.json", "--truth", truth)
		require.Equal(t, [3]float64{100, 100, 100}, percents(doc.Headline))
	}
}

// T1: one entry per test input in order, and what is missing is said.
func TestT1SubmissionKeepsItsPlaces(t *testing.T) {
	t.Chdir(t.TempDir())
	writeTasks(t, "evaluation", toy("a", 0, true, true))
	build(t, "set", 3, "evaluation")
	predict(t, "p.zst", "set", func(_ arc.Task, _, test int, label []uint8) []uint8 {
		if test == 0 {
			return nil
		}
		return label
	})
	code, out, errs := score("--predictions", "p.zst", "--submission", "sub.json")
	require.Zero(t, code, errs)
	require.Contains(t, errs, "1 test input of other tasks missing, counted as wrong: a test[0]")
	require.Contains(t, out, "0 of 1 tasks, 1 of 2 test inputs")
	require.Contains(t, out, "50.00% (1/2)")
	var sub map[string][]map[string][][]int
	raw, err := os.ReadFile("sub.json")
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(raw, &sub))
	require.Len(t, sub["a"], 2)
	require.Equal(t, map[string][][]int{"attempt_1": {{0}}, "attempt_2": {{0}}}, sub["a"][0])
	want := toy("a", 0, true, true).Test[1].Output
	require.Len(t, sub["a"][1]["attempt_1"], want.Rows)
	require.Equal(t, int(want.At(0, 1)), sub["a"][1]["attempt_1"][0][1])
}

// T2: the ground truth is the denominator, and strangers are errors.
func TestT2AnswersAgainstTruth(t *testing.T) {
	t.Chdir(t.TempDir())
	writeTasks(t, "truth", arc.Task{ID: "A", Train: toy("A", 0).Train, Test: []arc.Pair{{Input: one(1), Output: one(2)}}},
		arc.Task{ID: "B", Train: toy("B", 0).Train, Test: []arc.Pair{{Input: one(1), Output: one(3)}}})
	writeFile(t, "solutions.json", `{"A": [[[2]]], "B": [[[3]]]}`)
	writeFile(t, "A.json", `{"A": [{"attempt_1": [[9]], "attempt_2": [[2]]}]}`)
	writeFile(t, "gold.json", `{"A": [[[2]], "B": [[[3]]]}`)
	refused(t, []string{"--answers", "A.json", "--truth", "gold.json"}, "gold.json")
	writeFile(t, "gold.json", `{"A": [[[2]]], "B": [[[3]]]}`)
	for _, truth := range []string{"truth", "solutions.json", "gold.json"} {
		code, out, errs := score("--answers", "A.json", "--truth", truth)
		require.Zero(t, code, errs)
		require.Contains(t, errs, "1 task missing, counted as wrong: B")
		require.Contains(t, out, "pass@2   50.00% (1/2)")
		require.Contains(t, out, "pass@1   0.00% (0/2)")
		require.Contains(t, out, "1 of 2 tasks")
	}
	for content, parts := range map[string][]string{
		`{"C": [{"attempt_1": [[1]]}], "A": [{}, {}]}`:              {`"C" is not in the ground truth`, `"A" has 2 entries, expected 1`},
		`{"A": [{"attempt_1": [[1, 2], [3]], "attempt_2": [[x]]}]}`: {"not valid JSON"},
		`{"A": [{"attempt_1": [[1, 2], [3]], "attempt_2": 5}]}`:     {`task "A": test[0].attempt_1 row 1 has 1 cells, expected 2`, "attempt_2 is 5"},
		`[]`: {"expected an object"},
	} {
		writeFile(t, "bad.json", content)
		refused(t, []string{"--answers", "bad.json", "--truth", "truth"}, parts...)
	}
	writeFile(t, "short.json", `{"A": [{"attempt_1": [[2]], "attempt_2": null}], "B": []}`)
	code, out, errs := score("--answers", "short.json", "--truth", "truth")
	require.Zero(t, code, errs)
	require.Contains(t, errs, "1 attempts are missing or empty and count as wrong (Kaggle expects two everywhere): A test[0].attempt_2")
	require.Contains(t, out, "50.00% (1/2)")
}

// T3: A with 2 tests of which one is right, B right: 50.0 / 75.0 / 66.7.
func TestT3ThreeNumbers(t *testing.T) {
	t.Chdir(t.TempDir())
	writeFile(t, "solutions.json", `{"A": [[[1]], [[2]]], "B": [[[3]]]}`)
	writeFile(t, "sub.json", `{"A": [{"attempt_1": [[1]], "attempt_2": [[0]]}, {"attempt_1": [[0]], "attempt_2": [[1]]}], "B": [{"attempt_1": [[0]], "attempt_2": [[3]]}]}`)
	code, out, errs := score("--answers", "sub.json", "--truth", "solutions.json")
	require.Zero(t, code, errs)
	require.Contains(t, out, "pass@2   50.00% (1/2)   75.00% (1.50/2)   66.67% (2/3)")
	p := percents(scored(t, "--answers", "sub.json", "--truth", "solutions.json").Headline)
	require.InDeltaSlice(t, []float64{50, 75, 200.0 / 3}, p[:], 1e-9)
}

// T4: task names may hold underscores, look like augmentations, or hold the
// separator of another trainer.
func TestT4TaskNames(t *testing.T) {
	t.Chdir(t.TempDir())
	names := []string{"my_task_1", "my", "a|||b", "x_t3_0123456789", "_", "t0"}
	for i, n := range names {
		writeTasks(t, "evaluation", toy(n, i, true, true))
	}
	build(t, "set", 4, "evaluation")
	predict(t, "p.zst", "set", right)
	check := func(doc report) {
		require.Equal(t, [3]float64{100, 100, 100}, percents(doc.Ladder[0]))
		require.Equal(t, len(names), doc.Ladder[0].AllTests.Of)
		var got []string
		for _, task := range doc.Tasks {
			got = append(got, task.ID)
			require.Equal(t, 5, *task.Tests[1].Votes)
		}
		require.ElementsMatch(t, names, got)
	}
	check(scored(t, "--predictions", "p.zst", "--per-task"))
	// As a file of the reference: names alone tell.
	check(scored(t, "--predictions", "p.zst", "--data", "set/identifiers.json", "--per-task"))
	require.NoError(t, os.Remove("set/"+augment.ManifestName))
	check(scored(t, "--predictions", "p.zst", "--data", "set", "--per-task"))
}

// T11: a task with few different copies has fewer votes; nothing assumes 1000.
func TestT11ScoreUnequalVotes(t *testing.T) {
	t.Chdir(t.TempDir())
	writeTasks(t, "evaluation", toy("a", 0, true),
		arc.Task{ID: "ones", Train: []arc.Pair{{Input: one(1), Output: one(1)}}, Test: []arc.Pair{{Input: one(1), Output: one(1)}}})
	build(t, "set", 30, "evaluation")
	predict(t, "p.zst", "set", right)
	doc := scored(t, "--predictions", "p.zst")
	require.Equal(t, [2]int{9, 31}, [2]int{doc.Votes.Fewest, doc.Votes.Most})
	require.Equal(t, [3]float64{100, 100, 100}, percents(doc.Headline))
}

// T20: the same predictions give the same submission, and its attempts differ
// where there is a second answer.
func TestT20SecondAttemptDiffers(t *testing.T) {
	t.Chdir(t.TempDir())
	writeTasks(t, "evaluation", toy("a", 0, true), toy("b", 4, true))
	build(t, "set", 7, "evaluation")
	predict(t, "p.zst", "set", func(task arc.Task, cp, _ int, label []uint8) []uint8 {
		if task.ID == "b" || cp%2 == 0 {
			return label
		}
		half := append([]uint8(nil), label...)
		clear(half[10:]) // the first row only
		return half
	})
	var last []byte
	for range 2 {
		code, _, errs := score("--predictions", "p.zst", "--submission", "sub.json")
		require.Zero(t, code, errs)
		raw, err := os.ReadFile("sub.json")
		require.NoError(t, err)
		if last != nil {
			require.Equal(t, last, raw)
		}
		last = raw
	}
	var sub map[string][]map[string][][]int
	require.NoError(t, json.Unmarshal(last, &sub))
	require.NotEqual(t, sub["a"][0]["attempt_1"], sub["a"][0]["attempt_2"])
	require.Equal(t, [][]int{{0}}, sub["b"][0]["attempt_2"])
}

// T21: every score names the versions of dataset and right answers; another
// version is refused or its differences named.
func TestT21DatasetVersions(t *testing.T) {
	t.Chdir(t.TempDir())
	a, b := toy("a", 0, true), toy("b", 3, true)
	writeTasks(t, "v1/evaluation", a, b)
	b.Test[0].Output.Set(0, 0, (b.Test[0].Output.At(0, 0)+1)%10)
	writeTasks(t, "v2/evaluation", a, b)
	build(t, "set1", 3, "v1/evaluation")
	build(t, "set2", 3, "v2/evaluation")
	predict(t, "p.zst", "set1", right)

	one, two := openHash(t, "set1"), openHash(t, "set2")
	require.NotEqual(t, one, two)
	code, out, errs := score("--predictions", "p.zst")
	require.Zero(t, code, errs)
	require.Contains(t, out, "hash "+one)
	refused(t, []string{"--predictions", "p.zst", "--data", "set2"}, "another dataset than set2", one, two)

	doc := scored(t, "--predictions", "p.zst", "--truth", "v2/evaluation")
	require.Contains(t, strings.Join(doc.Warnings, "\n"), "1 test pairs of the dataset differ from v2/evaluation: b test[0]")
	require.Empty(t, scored(t, "--predictions", "p.zst", "--truth", "v1/evaluation").Warnings)
	require.NotEmpty(t, doc.TruthSHA256)

	// The right answers of two layouts are one version.
	writeFile(t, "sub.json", `{"a": []}`)
	require.Equal(t, doc.TruthSHA256, scored(t, "--answers", "sub.json", "--truth", "v1/evaluation").TruthSHA256)
	require.NotEqual(t, doc.TruthSHA256, scored(t, "--answers", "sub.json", "--truth", "v2/evaluation").TruthSHA256)

	// Moved: the message says so, --data finds it.
	require.NoError(t, os.Rename("set1", "elsewhere"))
	refused(t, []string{"--predictions", "p.zst"}, "set1 is gone or was moved", "--data DIR")
	require.Equal(t, [3]float64{100, 100, 100}, percents(scored(t, "--predictions", "p.zst", "--data", "elsewhere").Headline))
	// Changed.
	require.NoError(t, os.Rename("set2", "set1"))
	refused(t, []string{"--predictions", "p.zst"}, "set1 has changed since")
	raw, err := os.ReadFile("elsewhere/" + augment.TestPuzzlesName)
	require.NoError(t, err)
	writeFile(t, "elsewhere/"+augment.TestPuzzlesName, strings.Replace(string(raw), "[[", "[[ ", 1))
	refused(t, []string{"--predictions", "p.zst", "--data", "elsewhere"}, "was changed since it was built")
}

// Unlabelled test inputs are in no denominator but in the submission.
func TestScoreUnlabelled(t *testing.T) {
	t.Chdir(t.TempDir())
	writeTasks(t, "tasks", toy("a", 0, true, false), toy("b", 3, false))
	build(t, "set", 3, "tasks")
	predict(t, "p.zst", "set", func(task arc.Task, _, test int, label []uint8) []uint8 {
		if task.Test[test].Labelled() {
			return label
		}
		p := make([]uint8, len(label))
		p[0] = 2 // one cell of colour 0, which no augmentation changes
		return p
	})
	code, out, errs := score("--predictions", "p.zst", "--submission", "sub.json")
	require.Zero(t, code, errs)
	require.Contains(t, out, "pass@2   100.00% (1/1)   100.00% (1.00/1)   100.00% (1/1)")
	require.Contains(t, out, "2 unlabelled, in no denominator")
	require.Equal(t, 3, scored(t, "--predictions", "p.zst").Coverage.Answered)
	raw, err := os.ReadFile("sub.json")
	require.NoError(t, err)
	require.Equal(t, 6, strings.Count(string(raw), "attempt_"))

	// Nothing labelled at all.
	writeTasks(t, "none", toy("b", 3, false))
	build(t, "set0", 3, "none")
	predict(t, "q.zst", "set0", blank)
	code, out, errs = score("--predictions", "q.zst", "--submission", "sub0.json")
	require.Zero(t, code, errs)
	require.Contains(t, out, "no labels")
	require.FileExists(t, "sub0.json")
	refused(t, []string{"--answers", "sub0.json", "--truth", "none"}, "no right answers")
}

// Tasks of two folders with one name are one task, as in the reference.
func TestScoreSharedNames(t *testing.T) {
	t.Chdir(t.TempDir())
	writeTasks(t, "x/evaluation", toy("a", 0, true))
	writeTasks(t, "y/evaluation", toy("a", 5, true), toy("b", 3, true))
	build(t, "set", 2, "x", "y")
	predict(t, "p.zst", "set", right)
	doc := scored(t, "--predictions", "p.zst", "--per-task")
	require.Equal(t, [3]float64{100, 100, 100}, percents(doc.Headline))
	require.Equal(t, [2]int{2, 3}, [2]int{doc.Headline.AllTests.Of, doc.Headline.Outputs.Of})
}

func TestScoreRefuses(t *testing.T) {
	t.Chdir(t.TempDir())
	writeTasks(t, "evaluation", toy("a", 0, true))
	build(t, "set", 3, "evaluation")
	predict(t, "p.zst", "set", right)
	raw, err := os.ReadFile("p.zst")
	require.NoError(t, err)
	writeFile(t, "cut.zst", string(raw[:len(raw)-5]))
	writeFile(t, "text", "hello, hello, hello")
	writeFile(t, "names.json", `["<blank>", "z"]`)
	writeFile(t, "notnames.json", `{"a": 1}`)
	for _, c := range []struct {
		args  []string
		parts []string
	}{
		{[]string{"--predictions", "gone"}, []string{"gone"}},
		{[]string{"--predictions", "evaluation"}, []string{"evaluation holds tasks of ARC", "hrm build-data --input evaluation"}},
		{[]string{"--predictions", "cut.zst"}, []string{"cut.zst", "cut short"}},
		{[]string{"--predictions", "text"}, []string{"text"}},
		{[]string{"--predictions", "p.zst", "--data", "gone"}, []string{"no dataset gone"}},
		{[]string{"--predictions", "p.zst", "--data", "evaluation"}, []string{"evaluation"}},
		{[]string{"--predictions", "p.zst", "--data", "names.json"}, []string{"identifier 2, expected 0 to 1"}},
		{[]string{"--predictions", "p.zst", "--data", "notnames.json"}, []string{"list of names"}},
		{[]string{"--votes", "0"}, []string{"--votes is 0"}},
		{[]string{"--ladder", "1,0"}, []string{"--ladder has 0"}},
		{[]string{"--ladder", "one"}, []string{"ladder"}},
		{[]string{"--answers", "p.zst"}, []string{"--truth"}},
		{[]string{"--answers", "gone", "--truth", "evaluation"}, []string{"gone"}},
		{[]string{"--answers", "text", "--truth", "evaluation", "--data", "set"}, []string{"cannot be combined"}},
		{[]string{"--predictions", "p.zst", "--truth", "gone"}, []string{"gone"}},
		{[]string{"stray"}, []string{"stray"}},
	} {
		refused(t, c.args, c.parts...)
	}
	require.NoFileExists(t, "sub.json")
}

// The recorded voting sets through the command.
func TestGoldenScore(t *testing.T) {
	for _, path := range goldentest.Files(t, "*_predictions*.safetensors") {
		t.Run(filepath.Base(path), func(t *testing.T) {
			raw, err := os.ReadFile(goldentest.Partner(path, "_predictions", "_expected", ".json"))
			require.NoError(t, err)
			var want struct {
				K       []int
				Percent map[string]string
			}
			require.NoError(t, json.Unmarshal(raw, &want))
			code, out, errs := score("--predictions", path, "--data", goldentest.Partner(path, "_predictions", "_identifiers", ".json"))
			require.Zero(t, code, errs)
			lines := strings.Split(out, "\n")
			for k, percent := range want.Percent {
				found := false
				for _, l := range lines {
					f := strings.Fields(l)
					found = found || len(f) > 1 && f[0] == "pass@"+k && f[1] == percent
				}
				require.True(t, found, "pass@%s %s in\n%s", k, percent, out)
			}
		})
	}
}

func one(colour uint8) arc.Grid { return arc.Grid{Rows: 1, Cols: 1, Cells: []uint8{colour}} }

func writeFile(t *testing.T, path, content string) {
	t.Helper()
	require.NoError(t, os.WriteFile(path, []byte(content), 0o644))
}

func openHash(t *testing.T, dir string) string {
	t.Helper()
	m, err := augment.ReadManifest(dir)
	require.NoError(t, err)
	return m.DatasetHash
}
