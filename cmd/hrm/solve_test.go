package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"deeploop/arc"
	"deeploop/augment"
	"deeploop/hrm/solve"
	"deeploop/internal/cli"
	"deeploop/internal/files"
	"deeploop/internal/kernel/pick"
	"deeploop/internal/kernel/ref"
	"deeploop/voting"
)

// solveTiny answers in a fraction of a second, and badly.
const solveTiny = "solve --preset testing --hidden-size 16 --H-cycles 1 --L-cycles 1 --halt-max-steps 2 --global-batch-size 4 --steps 3 --votes 8 --threads 1 --kernel ref --precision fp32 "

// sampleFile writes a sample task as a file of its own.
func sampleFile(t *testing.T, id, path string, change func(*arc.Task)) {
	t.Helper()
	c, err := arc.Samples()
	require.NoError(t, err)
	task := *c.Find(id)[0]
	task.Test = append([]arc.Pair(nil), task.Test...)
	if change != nil {
		change(&task)
	}
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
	writeFile(t, path, string(task.JSON()))
}

func solvedJSON(t *testing.T, line string, more ...string) (d solveDoc) {
	t.Helper()
	out, _ := ok(t, solveTiny+"--json "+line, more...)
	require.NoError(t, json.Unmarshal([]byte(out), &d), out)
	return d
}

// A task file gives two drawn attempts, a score where it can be, a submission
// and a picture.
func TestSolveATask(t *testing.T) {
	t.Chdir(t.TempDir())
	sampleFile(t, "halo", "my task.json", nil)
	out, errs := ok(t, solveTiny+"--out answer.json", "my task.json")
	for _, want := range []string{"my task: 9 steps", "test[0] attempt 1: ", " votes", "wrote answer.json", "wrote answer.png", "pass@2", "(0/1)"} {
		require.Contains(t, out, want)
	}
	require.True(t, strings.HasPrefix(errs, "kernel ref"), errs)
	require.Contains(t, errs, "1 task, up to 3 models of 3 steps each")
	sub, err := voting.ParseSubmission([]byte(readFile(t, "answer.json")))
	require.NoError(t, err)
	require.Len(t, sub, 1)
	require.Equal(t, "my task", sub[0].ID)
	require.Len(t, sub[0].Tests[0], 2)
	require.True(t, strings.HasPrefix(readFile(t, "answer.png"), "\x89PNG"))

	// Again: nothing is computed, the same comes out.
	again, errs := ok(t, solveTiny+"--out answer.json", "my task.json")
	require.Contains(t, again, "answered before")
	require.Contains(t, again, "replaced answer.json")
	require.Contains(t, errs, "1 answered before in "+filepath.FromSlash(solveFolder))
	require.NotContains(t, errs, "each", "nothing is trained")
	out, _ = ok(t, solveTiny+"--again --quiet --color always", "my task.json")
	require.NotContains(t, out, "answered before")
	require.Contains(t, out, "\x1b[48;2;")
}

// With a number of steps everything is the same on every run; another seed is
// another run.
func TestSolveIsReproducible(t *testing.T) {
	t.Chdir(t.TempDir())
	one := solvedJSON(t, "halo mirror-sideways --work a")
	two := solvedJSON(t, "halo mirror-sideways --work b --parallel 2 --threads 2")
	for i := range one.Tasks {
		require.Equal(t, one.Tasks[i].Answers.Tests, two.Tasks[i].Answers.Tests)
		require.Equal(t, one.Tasks[i].Answers.Loss, two.Tasks[i].Answers.Loss)
	}
	require.NotEqual(t, one.Tasks[0].Answers.Loss, solvedJSON(t, "halo --seed 3").Tasks[0].Answers.Loss)
	msg := fails(t, cli.ExitUsage, solveTiny+"halo --seed 3 --work a")
	require.Contains(t, msg, "other settings")
}

// Test outputs are for the score: without them, or with others, the answers
// are the same and so are the kept files.
func TestSolveNeverLearnsFromTestOutputs(t *testing.T) {
	t.Chdir(t.TempDir())
	sampleFile(t, "mirror-sideways-square", "a/x.json", nil)
	sampleFile(t, "mirror-sideways-square", "b/x.json", func(t *arc.Task) { t.Test[0].Output = arc.Grid{} })
	want := solvedJSON(t, "a/x.json --work wa")
	got := solvedJSON(t, "b/x.json --work wb")
	require.Equal(t, want.Tasks[0].Answers.Tests, got.Tasks[0].Answers.Tests)
	require.Equal(t, want.Tasks[0].Answers.Loss, got.Tasks[0].Answers.Loss)
	require.Equal(t, 1, want.Score[1].Outputs.Of)
	require.Nil(t, got.Score[1].Outputs.Percent)
	require.True(t, solvedJSON(t, "b/x.json --work wa").Tasks[0].Kept)

	// A right answer counts: what was answered, as the truth.
	answer := want.Tasks[0].Answers.Tests[0].Top
	require.NotEmpty(t, answer)
	sampleFile(t, "mirror-sideways-square", "c/x.json", func(t *arc.Task) { t.Test[0].Output = answer[0].Grid })
	doc := solvedJSON(t, "c/x.json --work wa")
	require.Equal(t, 1.0, doc.Score[0].Outputs.Solved)
	out, _ := ok(t, solveTiny+"c/x.json --work wa")
	require.Contains(t, out, ", right")
	require.Contains(t, out, "100.00% of tasks (1/1)")
}

// Two tests in a task have two entries.
func TestSolveTwoTests(t *testing.T) {
	t.Chdir(t.TempDir())
	sampleFile(t, "halo", "two.json", func(t *arc.Task) { t.Test = append(t.Test, arc.Pair{Input: t.Train[0].Output}) })
	out, _ := ok(t, solveTiny+"two.json --out two-answers.json")
	require.Contains(t, out, "test[1] attempt 2")
	sub, err := voting.ParseSubmission([]byte(readFile(t, "two-answers.json")))
	require.NoError(t, err)
	require.Len(t, sub[0].Tests, 2)
}

// A folder is read for its tasks: other files are left out with a warning, and
// --tasks chooses.
func TestSolveAFolder(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, id := range []string{"halo", "mirror-sideways", "hollow-out"} {
		sampleFile(t, id, "tasks/"+id+".json", nil)
	}
	writeFile(t, "tasks/package.json", `{"name": "x", "version": 1}`)
	writeFile(t, "tasks/broken.json", `{"train": [`)
	writeFile(t, "tasks/notes.txt", "notes")
	writeFile(t, "list.txt", "hollow-out\nhalo\n")
	out, errs := ok(t, solveTiny+"tasks --tasks list.txt --out all.json")
	require.Contains(t, errs, "package.json")
	require.Contains(t, errs, "broken.json")
	require.NotContains(t, errs, "notes.txt")
	require.Contains(t, errs, "2 tasks, up to 3 models of 3 steps each")
	require.NotContains(t, out, "mirror-sideways")
	sub, err := voting.ParseSubmission([]byte(readFile(t, "all.json")))
	require.NoError(t, err)
	require.Len(t, sub, 2)
	// hrm score reads it.
	require.NoError(t, os.Remove("tasks/mirror-sideways.json"))
	require.NoError(t, os.Remove("tasks/package.json"))
	require.NoError(t, os.Remove("tasks/broken.json"))
	out, _ = ok(t, "score --answers all.json --truth tasks")
	require.Contains(t, out, "pass@2")
}

// Tasks in a folder and in its folders are all answered, one that is there twice
// once, and two of one name are an error that names both.
func TestSolveAFolderOfFolders(t *testing.T) {
	t.Chdir(t.TempDir())
	one := strings.Replace(solveTiny, "--steps 3", "--steps 1 --models 1", 1)
	sampleFile(t, "halo", "tasks/halo.json", nil)
	sampleFile(t, "overlap", "tasks/sub/overlap.json", nil)
	sampleFile(t, "overlap", "tasks/again/overlap.json", nil)
	sampleFile(t, "hollow-out", "tasks/data/inner/hollow-out.json", nil)
	_, errs := ok(t, one+"tasks --out all.json")
	require.NotContains(t, errs, "not read")
	require.NotContains(t, errs, "all kept")
	require.Contains(t, filepath.ToSlash(errs), "there twice, answered once: overlap (tasks/again/overlap.json and tasks/sub/overlap.json)")
	sub, err := voting.ParseSubmission([]byte(readFile(t, "all.json")))
	require.NoError(t, err)
	var ids []string
	for _, a := range sub {
		ids = append(ids, a.ID)
	}
	require.Equal(t, []string{"halo", "overlap", "hollow-out"}, ids)
	ok(t, one+"tasks:halo")

	sampleFile(t, "erase-dots", "tasks/sub/halo.json", nil)
	msg := fails(t, cli.ExitUsage, one+"tasks")
	require.Contains(t, filepath.ToSlash(msg), `two different tasks are called "halo" (tasks/halo.json and tasks/sub/halo.json)`)
	require.NotContains(t, msg, "kept")
	ok(t, one+"tasks/sub/halo.json")
	writeFile(t, "tasks/bad.json", `{"train": [`)
	ok(t, one+"tasks:overlap")
	require.Contains(t, fails(t, cli.ExitUsage, one+"tasks:bad"), "bad.json")
}

// The rest of a killed run is answered by the same command.
func TestSolveGoesOnAfterAKill(t *testing.T) {
	t.Chdir(t.TempDir())
	ids := "halo mirror-sideways hollow-out erase-dots erase-gray overlap "
	line := solveTiny + ids + "--work w --json "
	want := solvedJSON(t, ids+"--work whole")
	c := hrmProgram.Process(line)
	require.NoError(t, c.Start())
	require.Eventually(t, func() bool {
		files, _ := filepath.Glob("w/*.json")
		return len(files) > 2 // settings and two tasks
	}, 60*time.Second, 2*time.Millisecond)
	require.NoError(t, c.Process.Signal(syscall.SIGKILL))
	require.Error(t, c.Wait())
	d := solvedJSON(t, ids+"--work w")
	kept := 0
	for i := range d.Tasks {
		if d.Tasks[i].Kept {
			kept++
		}
		require.Equal(t, want.Tasks[i].Answers.Tests, d.Tasks[i].Answers.Tests)
	}
	require.GreaterOrEqual(t, kept, 2)
	require.Less(t, kept, 6)
	// A damaged file is answered anew.
	path, _ := (&work{"w"}).file(sampleTask(t, "halo"))
	writeFile(t, path, `{"problem_sha256": "x"`)
	d = solvedJSON(t, ids+"--work w")
	require.False(t, d.Tasks[0].Kept)
	require.Equal(t, want.Tasks[0].Answers.Tests, d.Tasks[0].Answers.Tests)
}

func sampleTask(t *testing.T, id string) *arc.Task {
	t.Helper()
	c, err := arc.Samples()
	require.NoError(t, err)
	return c.Find(id)[0]
}

// Ctrl-C answers with what was learned, keeps nothing half-learned and says so.
func TestSolveInterrupted(t *testing.T) {
	t.Chdir(t.TempDir())
	line := strings.Replace(solveTiny, "--steps 3", "--steps 1000000", 1) + "halo overlap --work w --out o.json"
	out, errs := hrmProgram.Interrupted(t, line, "errors", "halo: step")
	require.Contains(t, out, "test[0] attempt 1")
	require.Contains(t, out, "1 task without an answer")
	require.Contains(t, errs, "the same command goes on")
	sub, err := voting.ParseSubmission([]byte(readFile(t, "o.json")))
	require.NoError(t, err)
	require.Len(t, sub, 2)
	require.Equal(t, "[[0]]", string(sub[1].Tests[0][1].AppendJSON(nil)))
	kept, err := filepath.Glob("w/*.json")
	require.NoError(t, err)
	require.Equal(t, []string{filepath.Join("w", settingsFile)}, kept)
}

// A time limit ends tasks in time.
func TestSolveInTime(t *testing.T) {
	t.Chdir(t.TempDir())
	begin := time.Now()
	d := solvedJSON(t, "halo --steps 0 --minutes 0.02")
	require.Less(t, time.Since(begin), 20*time.Second)
	require.Equal(t, "time", d.Tasks[0].Answers.End)
	require.Positive(t, d.Tasks[0].Answers.Steps)
}

// From a checkpoint: new embeddings are fitted, or all weights.
func TestSolveFromACheckpoint(t *testing.T) {
	workFolder(t)
	ok(t, trainTiny+"--steps 2 --ema --run runs/a")
	line := "solve halo --steps 3 --votes 8 --global-batch-size 4 --threads 1 --precision fp32 --json --checkpoint runs/a "
	read := func(more string) (d solveDoc) {
		t.Helper()
		out, _ := ok(t, line+more)
		require.NoError(t, json.Unmarshal([]byte(out), &d))
		return d
	}
	frozen := read("")
	all := read("--all-weights")
	require.NotEqual(t, frozen.Tasks[0].Answers.Loss, all.Tasks[0].Answers.Loss)
	require.NotEqual(t, frozen.Work, all.Work)
	require.NotEqual(t, frozen.Work, read("--weights raw").Work)
	read("--init zeros --H-cycles 3 --halt-max-steps 5")
	read("--checkpoint runs/a/checkpoints/step-00000002")

	for more, want := range map[string]string{
		"--hidden-size 64":     "--hidden-size cannot be chosen with --checkpoint",
		"--preset laptop":      "choose one",
		"--weights best":       "expected ema or raw",
		"--init ones":          "mean, zeros",
		"--checkpoint nowhere": "nowhere",
	} {
		require.Contains(t, fails(t, cli.ExitUsage, line+more), want)
	}
}

// A checkpoint is one model by default, and says what it is. Tasks larger than
// its canvas are named before any is begun; the others are answered.
func TestSolveTasksThatACheckpointCannotHold(t *testing.T) {
	workFolder(t)
	ok(t, trainTiny+"--steps 2 --ema --run runs/a")
	m, err := augment.ReadManifest("data/small")
	require.NoError(t, err)
	side := m.Settings.MaxGrid
	require.Less(t, side, arc.MaxSide)
	line := "solve --steps 3 --votes 8 --global-batch-size 4 --threads 1 --precision fp32 --checkpoint runs/a "

	out, errs := ok(t, line+"halo")
	require.Contains(t, out, "halo (training): 3 steps in ")
	require.Contains(t, filepath.ToSlash(errs), fmt.Sprintf("from runs/a/checkpoints/step-00000002 (step 2, ema weights, %dx%d canvas): new task embeddings are fitted\n1 task, 3 steps each\n", side, side))
	out, errs = ok(t, line+"halo --models 2 --all-weights --weights raw")
	require.Contains(t, out, "halo (training): 6 steps in ")
	require.Contains(t, errs, "raw weights")
	require.Contains(t, errs, "all weights are fitted\n1 task, up to 2 models of 3 steps each\n")

	large := arc.NewGrid(side+1, 3)
	require.NoError(t, os.Mkdir("tasks", 0o755))
	for _, id := range []string{"a", "z"} {
		task := arc.Task{ID: id, Train: []arc.Pair{{Input: large, Output: large}}, Test: []arc.Pair{{Input: large}}}
		writeFile(t, "tasks/"+id+".json", string(task.JSON()))
	}
	sentence := func(id string) string {
		return fmt.Sprintf("solve %s: it needs a %dx%d canvas, the checkpoint was trained on %dx%d ones", id, side+1, side+1, side, side)
	}
	code, out, errs := runHRM(strings.Fields(line + "tasks")...)
	require.Equal(t, cli.ExitUsage, code)
	require.Contains(t, errs, sentence("a"))
	require.Contains(t, errs, sentence("z"))
	require.NotContains(t, errs, "steps each")
	require.Empty(t, out)

	sampleFile(t, "overlap", "tasks/overlap.json", nil)
	code, out, errs = runHRM(strings.Fields(line + "tasks --out o.json")...)
	require.Equal(t, cli.ExitFailure, code, errs)
	begun := strings.Index(errs, "1 task, 3 steps each\n")
	require.Positive(t, begun, errs)
	for _, id := range []string{"a", "z"} {
		at := strings.Index(errs, "warning: left out: "+sentence(id))
		require.True(t, at >= 0 && at < begun, errs)
		require.Equal(t, 1, strings.Count(errs, sentence(id)))
	}
	require.Contains(t, errs, "solve: 2 of 3 tasks left out, see above")
	require.Contains(t, out, "overlap (tasks): 3 steps in ")
	require.Contains(t, out, "2 tasks without an answer")
	sub, err := voting.ParseSubmission([]byte(readFile(t, "o.json")))
	require.NoError(t, err)
	require.Len(t, sub, 3)
}

// Several may begin in one folder at a time, and one that was killed while it
// began is in nobody's way.
func TestSolveBeginsInOneFolder(t *testing.T) {
	t.Chdir(t.TempDir())
	require.NoError(t, os.Mkdir("w", 0o755))
	writeFile(t, "w/"+files.TempPrefix+"1-1", "")
	_, errs := ok(t, strings.Replace(solveTiny, "--steps 3", "--steps 1", 1)+"halo --models 1 --work w")
	require.Contains(t, errs, "1 task, 1 step each")
	require.Contains(t, errs, "step 1 (100%")
	settings := solve.Defaults()
	for range 20 {
		require.NoError(t, os.RemoveAll("x"))
		ended := make(chan error)
		for range 4 {
			go func() { _, err := openWork("x", settings, nil); ended <- err }()
		}
		for range 4 {
			require.NoError(t, <-ended)
		}
	}
}

// The document names the files that were written and no others.
func TestSolveNamesWhatItWrote(t *testing.T) {
	t.Chdir(t.TempDir())
	o := &solveOptions{out: "o.json", pictureFile: "o.png", json: true}
	task := sampleTask(t, "halo")
	v := &solving{tasks: []*arc.Task{task}, done: []*solved{{task: task}}, team: &team{choices: []pick.Choice{{Backend: ref.New(1)}}}, work: &work{"w"}}
	var out strings.Builder
	require.NoError(t, o.write(&cli.Streams{Out: &out, Err: io.Discard}, v))
	require.NoFileExists(t, "o.json")
	require.NotContains(t, out.String(), "o.json")
	require.NotContains(t, out.String(), "o.png")
}

// The caller's mistakes are sentences and code 2, before any work.
func TestSolveRefusals(t *testing.T) {
	t.Chdir(t.TempDir())
	writeFile(t, "bad.json", `{"train": [{"input": [[1,2],[3]], "output": [[1]]}], "test": [{"input": [[1]]}]}`)
	writeFile(t, "cut.json", `{"train": [{"input`)
	writeFile(t, "list.txt", "nobody\n")
	writeFile(t, "null.json", "null")
	writeFile(t, "notes.png", "mine")
	require.NoError(t, os.Mkdir("empty", 0o755))
	sampleFile(t, "halo", "x/same.json", nil)
	sampleFile(t, "overlap", "y/same.json", nil)
	require.NoError(t, os.Mkdir("foreign", 0o755))
	writeFile(t, "foreign/mine.txt", "x")
	writeFile(t, "foreign/package.json", "{}")
	for line, want := range map[string]string{
		"":                           "no TASK given",
		"bad.json":                   "train[0].input row 1 has 1 cell, expected 2",
		"cut.json":                   "cut.json",
		"gone.json":                  "solve gone.json: no such file",
		"haloo":                      "did you mean halo",
		"empty":                      "empty folder",
		"foreign":                    "package.json",
		"x y":                        `two different tasks are called "same"`,
		"halo --tasks list.txt":      "nobody",
		"halo --tasks gone.txt":      "gone.txt",
		"halo --minutes 0":           "--minutes is 0",
		"halo --minutes NaN":         "--minutes is NaN",
		"halo --steps -1":            "steps is -1",
		"halo --votes 0":             "votes is 0",
		"halo --colors red":          "colors is",
		"halo --parallel -1":         "--parallel is -1",
		"halo --out answer.txt":      "does not end in .json",
		"halo --out notes.json":      "notes.png exists and is no PNG picture",
		"halo --out none/a.json":     "cannot be written",
		"halo --work foreign":        "no work folder",
		"halo --work list.txt":       "--work list.txt is a file",
		"halo --color blue":          "expected auto, always or never",
		"halo --preset x":            `preset is "x", expected one of solve, hrm_v1`,
		"halo --num-heads 3":         "(chosen at --num-heads)",
		"halo --data d":              "--data means nothing to hrm solve",
		"halo --keep 3":              "--keep means nothing to hrm solve",
		"halo --all-weights":         "needs --checkpoint",
		"halo --checkpoint list.txt": "list.txt holds text, expected a run of hrm train",
		"null.json":                  `null.json: found "null" at line 1, column 1, expected an object`,
		"halo --threads -2":          "threads is -2",
		"halo --global-batch-size 9999999 --kernel ref": "of memory",
	} {
		code, out, errs := runHRM(append([]string{"solve"}, strings.Fields(line)...)...)
		require.Equal(t, cli.ExitUsage, code, "%s\n%s", line, errs)
		require.Contains(t, errs, want, line)
		require.NotContains(t, out, "attempt", line)
	}
	left, err := filepath.Glob("runs/solve/*/*")
	require.NoError(t, err)
	for _, f := range left {
		require.Equal(t, settingsFile, filepath.Base(f))
	}
}
