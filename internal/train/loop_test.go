package train

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"deeploop/internal/checkpoint"
	"deeploop/internal/cli"
	"deeploop/internal/optim"
	"deeploop/internal/runlog"
)

var bg = context.Background()

func TestUninterruptedRun(t *testing.T) {
	dir := whole(t, 20)
	lines, err := runlog.Read(filepath.Join(dir, MetricsFile))
	require.NoError(t, err)
	var steps, evals []int
	for _, l := range lines {
		if l.Event == runlog.Eval {
			evals = append(evals, l.Step)
		} else {
			steps = append(steps, l.Step)
		}
	}
	require.Len(t, steps, 20)
	require.Equal(t, []int{7, 14, 20}, evals)
	require.Less(t, lines[len(lines)-1].Values["distance"], lines[7].Values["distance"], "it learns")
	x := index(t, dir)
	require.Equal(t, 20, x.Last.Step)
	require.Equal(t, 20, x.Best.Step)
	require.Equal(t, "lr: 0.02\n", read(t, dir, "config.yaml"))
	require.NoFileExists(t, filepath.Join(dir, checkpoint.LockFile))
	require.Contains(t, read(t, dir, SessionsFile), `"event":"stop","step":20`)
}

// T26: 20 steps equal 10 and 10 more after a resume: same losses, same bytes.
func TestT26ResumeIsBitIdentical(t *testing.T) {
	want := whole(t, 20)
	for _, cuts := range [][]int{{10}, {7}, {1, 1, 17}} {
		got := filepath.Join(t.TempDir(), "cut")
		how := New
		var out bytes.Buffer
		for _, n := range cuts {
			o := options(20)
			o.StopAfter, o.Progress = n, &runlog.Progress{W: &out, Now: time.Now}
			require.NoError(t, session(bg, got, how, o, newToy(20)))
			how = Resume
		}
		require.Contains(t, out.String(), "continue with: toy --resume")
		require.NoError(t, session(bg, got, Resume, options(20), newToy(20)))
		requireSame(t, want, got)
	}
}

func TestResumeOfFinishedRunChangesNothing(t *testing.T) {
	dir := undisturbed(t, 7)
	before, metrics := digest(t, dir), read(t, dir, MetricsFile)
	var out bytes.Buffer
	o := options(7)
	o.Progress = &runlog.Progress{W: &out, Now: time.Now}
	y := newToy(7)
	require.NoError(t, session(bg, dir, Resume, o, y))
	require.Zero(t, y.evaluated)
	require.Equal(t, before, digest(t, dir))
	require.Equal(t, metrics, read(t, dir, MetricsFile))
	require.Contains(t, out.String(), "finished at step 7 of 7")
}

func TestResumeWithoutCheckpointStartsAndSaysSo(t *testing.T) {
	want := whole(t, 6)
	for name, prepare := range map[string]func(dir string){
		"no folder":    func(string) {},
		"empty folder": func(dir string) { require.NoError(t, os.MkdirAll(dir, 0o755)) },
		"metrics only": func(dir string) {
			require.NoError(t, os.MkdirAll(dir, 0o755))
			require.NoError(t, os.WriteFile(filepath.Join(dir, MetricsFile), []byte("{\"step\":1,\"event\":\"train\"}\n{\"st"), 0o644))
		},
	} {
		dir := filepath.Join(t.TempDir(), "run")
		prepare(dir)
		var out bytes.Buffer
		o := options(6)
		o.Progress = &runlog.Progress{W: &out, Now: time.Now}
		require.NoError(t, session(bg, dir, Resume, o, newToy(6)), name)
		require.Contains(t, out.String(), "holds no checkpoint: starting from the beginning", name)
		requireSame(t, want, dir)
	}
}

func TestExistingRunIsRefused(t *testing.T) {
	dir := undisturbed(t, 6)
	before := digest(t, dir)
	err := session(bg, dir, New, options(6), newToy(6))
	require.Equal(t, cli.ExitUsage, cli.ExitCode(err))
	require.ErrorContains(t, err, "exists already and is not empty (its last checkpoint is at step 6)")
	require.ErrorContains(t, err, "--resume")
	require.ErrorContains(t, err, "--force")
	require.Equal(t, before, digest(t, dir))

	foreign := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(foreign, "thesis.tex"), nil, 0o644))
	err = session(bg, foreign, New, options(6), newToy(6))
	require.ErrorContains(t, err, "holds no run (it has thesis.tex")
	require.NoFileExists(t, filepath.Join(foreign, checkpoint.LockFile), "the refusal leaves nothing behind")
}

func TestRunFolderThatIsAFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "thesis.tex")
	require.NoError(t, os.WriteFile(path, []byte("mine"), 0o644))
	for _, how := range []How{New, Resume, Replace} {
		err := session(bg, path, how, options(6), newToy(6))
		require.Equal(t, cli.ExitUsage, cli.ExitCode(err))
		require.ErrorContains(t, err, "choose another --run")
	}
}

func TestReplaceRemovesTheRunAndNothingElse(t *testing.T) {
	want := whole(t, 6)
	dir := undisturbed(t, 9)
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "eval"), 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "notes.txt"), []byte("mine"), 0o644))
	require.NoError(t, session(bg, dir, Replace, options(6), newToy(6)))
	requireSame(t, want, dir)
	require.Equal(t, "mine", read(t, dir, "notes.txt"))
	require.NoDirExists(t, filepath.Join(dir, "eval"))
}

func TestLockedRunIsRefused(t *testing.T) {
	dir := t.TempDir()
	r, err := Open(Folder{Dir: dir, Now: time.Now})
	require.NoError(t, err)
	for _, how := range []How{New, Resume, Replace} {
		_, err = Open(Folder{Dir: dir, How: how, Now: time.Now})
		var locked *checkpoint.LockedError
		require.ErrorAs(t, err, &locked)
	}
	require.NoError(t, r.Close())
	require.NoError(t, r.Close(), "twice does no harm")
}

func TestInterruptionFinishesTheStepAndSaves(t *testing.T) {
	want := whole(t, 20)
	for _, at := range []int{1, 3, 7} { // beside, on a save, on an evaluation
		dir := filepath.Join(t.TempDir(), "run")
		ctx, cancel := context.WithCancel(bg)
		y := newToy(20)
		y.each = func(step int) {
			if step == at {
				cancel()
			}
		}
		y.eval = func(ctx context.Context) error { return ctx.Err() }
		err := session(ctx, dir, New, options(20), y)
		require.ErrorIs(t, err, cli.ErrInterrupted)
		require.Equal(t, cli.ExitInterrupted, cli.ExitCode(err))
		require.ErrorContains(t, err, fmt.Sprintf("interrupted at step %d of 20", at))
		require.ErrorContains(t, err, "continue with: toy --resume")
		require.Equal(t, at, index(t, dir).Last.Step)
		require.NoError(t, session(bg, dir, Resume, options(20), newToy(20)))
		requireSame(t, want, dir)
	}
}

func TestInterruptionBeforeTheFirstStep(t *testing.T) {
	ctx, cancel := context.WithCancel(bg)
	cancel()
	err := session(ctx, t.TempDir(), New, options(20), newToy(20))
	require.ErrorIs(t, err, cli.ErrInterrupted)
	require.ErrorContains(t, err, "before the first step")
}

func TestBrokenNumbersStopTheRun(t *testing.T) {
	for what, c := range map[string]struct {
		step   int
		poison func(y *toy) // after the backward pass of step
		want   string
	}{
		"gradient": {5, func(y *toy) { y.params[1].G.SetAt(1, math.Inf(1)) }, "gradient of toy.w2 is +Inf at element 1"},
		"weight":   {6, func(y *toy) { y.params[0].W.SetAt(2, math.NaN()) }, "weight of toy.w4 is NaN at element 2"}, // seen before the save of step 6
	} {
		dir := filepath.Join(t.TempDir(), "run")
		y := newToy(20)
		y.poison = map[int]func(*toy){c.step: c.poison}
		err := session(bg, dir, New, options(20), y)
		var broken *BrokenError
		require.ErrorAs(t, err, &broken, what)
		require.Equal(t, cli.ExitFailure, cli.ExitCode(err))
		require.Equal(t, c.step, broken.Step)
		require.Equal(t, 3, index(t, dir).Last.Step, what)
		require.EqualError(t, err, fmt.Sprintf("step %d: %s; stopped without saving; the last good checkpoint is %s (step 3)",
			c.step, c.want, broken.LastGood))
		require.NoError(t, session(bg, dir, Resume, options(20), newToy(20)))
		requireSame(t, whole(t, 20), dir)
	}
}

// lossy reports a loss that is not finite while all tensors are.
type lossy struct{ *toy }

func (l lossy) Step(ctx context.Context, step int) (Result, error) {
	res, err := l.toy.Step(ctx, step)
	if step == 2 {
		res.Loss, res.Metrics["loss"] = math.NaN(), math.NaN()
	}
	return res, err
}

func TestBrokenLoss(t *testing.T) {
	dir := t.TempDir()
	r, err := Open(Folder{Dir: dir, Now: time.Now})
	require.NoError(t, err)
	defer r.Close()
	err = r.Train(bg, options(20), lossy{newToy(20)})
	var nf *optim.NonFinite
	require.ErrorAs(t, err, &nf)
	require.EqualError(t, err, "step 2: loss is NaN; stopped without saving; there is no earlier checkpoint")
	lines, err := runlog.Read(filepath.Join(dir, MetricsFile))
	require.NoError(t, err)
	require.True(t, math.IsNaN(lines[1].Values["loss"]))
}

func TestOtherErrorsOfAStepNameIt(t *testing.T) {
	y := newToy(20)
	boom := errors.New("boom")
	y.eval = func(context.Context) error { return boom }
	err := session(bg, t.TempDir(), New, options(20), y)
	require.ErrorIs(t, err, boom)
	require.ErrorContains(t, err, "evaluate at step 7")
	var broken *BrokenError
	require.NotErrorAs(t, err, &broken)
}

// T16, T17 where a run is resumed: refused by count and hash, unless told.
func TestT16T17ResumeWithOtherIds(t *testing.T) {
	for name, ids := range map[string][]string{
		"dataset has 4; use":        {"<blank>", "a", "b", "c"},
		"dataset has 3 others (has": {"<blank>", "a", "c"},
	} {
		dir := filepath.Join(t.TempDir(), "run")
		o := options(20)
		o.StopAfter = 7
		require.NoError(t, session(bg, dir, New, o, newToy(20)))
		before := digest(t, dir)

		id := checkpoint.IdentityOf(ids)
		o = options(20)
		o.Meta.Identity = &id
		y := newToy(20)
		y.table = newToyTable(len(ids))
		err := session(bg, dir, Resume, o, y)
		require.Equal(t, cli.ExitUsage, cli.ExitCode(err))
		require.ErrorContains(t, err, "checkpoint built for 3 ids, "+name)
		require.ErrorContains(t, err, "--reset-task-embeddings")
		require.Equal(t, before, digest(t, dir))

		o.ResetTaskEmbeddings, o.StopAfter = true, 1
		var out bytes.Buffer
		o.Progress = &runlog.Progress{W: &out, Quiet: true, Now: time.Now}
		y = newToy(20)
		y.table = newToyTable(len(ids))
		y.pos.Pass = 99
		require.NoError(t, session(bg, dir, Resume, o, y))
		require.Equal(t, []string{checkpoint.TaskEmbeddings, checkpoint.Carry}, y.fresh)
		require.Equal(t, 99, y.pos.Pass, "the loader's place is not taken over")
		require.Equal(t, 8, y.adam.Steps, "the optimizer's is")
		require.Contains(t, out.String(), "warning: ")
		require.Equal(t, 8, index(t, dir).Last.Step)
	}
}

func TestResumeWithOtherSettingsIsRefused(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	o := options(20)
	o.StopAfter = 4
	require.NoError(t, session(bg, dir, New, o, newToy(20)))
	o.Meta.Config = json.RawMessage(`{"lr":0.1,"threads":2}`)
	err := session(bg, dir, Resume, o, newToy(20))
	require.Equal(t, cli.ExitUsage, cli.ExitCode(err))
	require.ErrorContains(t, err, "lr: 0.02, now 0.1")
	require.ErrorContains(t, err, "threads: 1, now 2")
	o.MayChange = []Change{{Key: "lr"}}
	err = session(bg, dir, Resume, o, newToy(20))
	require.ErrorContains(t, err, "(threads: 1, now 2)", "what may change is not named")
	require.NotContains(t, err.Error(), "\n", "one sentence")
	o.MayChange = append(o.MayChange, Change{Key: "threads", Follows: "sums round otherwise"})
	var said strings.Builder
	o.Progress.W = &said
	require.NoError(t, session(bg, dir, Resume, o, newToy(20)))
	require.Contains(t, said.String(), "threads: 1, now 2: sums round otherwise")
	require.NotContains(t, said.String(), "lr: ", "nothing follows")

	o = options(20)
	o.Meta.Kind = "lm"
	require.ErrorContains(t, session(bg, dir, Resume, o, newToy(20)), `kind "toy"`)
	require.ErrorContains(t, session(bg, dir, Resume, options(5), newToy(5)), "beyond the schedule's 5 steps")
	require.Equal(t, cli.ExitUsage, cli.ExitCode(session(bg, dir, Resume, options(0), newToy(0))))
}

// Values of another measure are not compared: the first evaluation after the
// change is the best one, whether or not a save came before it.
func TestResumeThatMeasuresOtherwiseForgetsTheBest(t *testing.T) {
	for _, at := range []int{7, 8} { // evaluated at 7
		dir := filepath.Join(t.TempDir(), "run")
		o := options(20)
		o.StopAfter = at
		if at == 7 { // saved, and ended before the evaluation
			y := newToy(20)
			y.eval = func(context.Context) error { return errors.New("ended") }
			require.ErrorContains(t, session(bg, dir, New, o, y), "ended")
		} else {
			require.NoError(t, session(bg, dir, New, o, newToy(20)))
		}
		store := checkpoint.Store{Dir: filepath.Join(dir, checkpoint.Folder)}
		require.NoError(t, store.MarkEvaluated(index(t, dir).Evaluated, &checkpoint.Best{Ref: *index(t, dir).Last, Metric: "distance", Value: -1})) // none is better
		o.Meta.Config = json.RawMessage(`{"lr":0.02,"threads":2}`)
		o.MayChange = []Change{{Key: "threads", Follows: "others are measured", Measures: true}}
		o.StopAfter = 7
		require.NoError(t, session(bg, dir, Resume, o, newToy(20)))
		require.Equal(t, 14, index(t, dir).Best.Step, "the toy comes nearer with each step")

		o.StopAfter = 0 // the next session has the same settings
		require.NoError(t, session(bg, dir, Resume, o, newToy(20)))
		require.Equal(t, 20, index(t, dir).Best.Step)
	}
}

func TestDamagedLastCheckpointNamesTheOthers(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	o := options(20)
	o.Keep, o.StopAfter = 1, 10
	require.NoError(t, session(bg, dir, New, o, newToy(20)))
	last := filepath.Join(dir, checkpoint.Folder, index(t, dir).Last.Name)
	require.NoError(t, os.Truncate(filepath.Join(last, "weights.safetensors"), 20))
	err := session(bg, dir, Resume, o, newToy(20))
	require.Equal(t, cli.ExitUsage, cli.ExitCode(err))
	require.ErrorContains(t, err, "cut short")
	require.ErrorContains(t, err, "step-00000009")
	require.ErrorContains(t, err, "step-00000007")
	index := filepath.Join(dir, checkpoint.Folder, "index.json")
	require.ErrorContains(t, err, "remove "+last+" and "+index)

	// following the advice works, and still ends where an undisturbed run does
	require.NoError(t, os.RemoveAll(last))
	require.NoError(t, os.Remove(index))
	require.NoError(t, session(bg, dir, Resume, options(20), newToy(20)))
	require.Equal(t, digest(t, whole(t, 20)), digest(t, dir))
}

func TestSaveIntervalUsesTheClock(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	dir := t.TempDir()
	o := options(10)
	o.SaveEvery, o.EvalEvery, o.Keep, o.SaveInterval = 0, 0, 100, time.Minute
	o.Now = func() time.Time { return now }
	y := newToy(10)
	y.each = func(int) { now = now.Add(25 * time.Second) }
	require.NoError(t, session(bg, dir, New, o, y))
	var steps []int
	for _, k := range index(t, dir).Kept {
		steps = append(steps, k.Step)
	}
	require.Equal(t, []int{3, 6, 9}, steps)
	require.Nil(t, index(t, dir).Best)
	require.Contains(t, read(t, dir, SessionsFile), `"tokens_s":0.24`)
}

func TestBestFollowsTheMetric(t *testing.T) {
	for low, want := range map[bool]int{true: 20, false: 7} { // the distance falls
		o := options(20)
		o.BestIsLow = low
		dir := t.TempDir()
		require.NoError(t, session(bg, dir, New, o, newToy(20)))
		require.Equal(t, want, index(t, dir).Best.Step)
		require.DirExists(t, filepath.Join(dir, checkpoint.Folder, index(t, dir).Best.Name))
	}
}

// swapping moves its carry to another buffer at every step.
type swapping struct{ *toy }

func (s swapping) Step(ctx context.Context, step int) (Result, error) {
	s.carry = append([]float32{}, s.carry...)
	return s.toy.Step(ctx, step)
}

func TestStateMayChangeItsBuffers(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	for range 2 {
		r, err := Open(Folder{Dir: dir, How: Resume, Now: time.Now})
		require.NoError(t, err)
		o := options(20)
		o.StopAfter = 10
		require.NoError(t, r.Train(bg, o, swapping{newToy(20)}))
		require.Nil(t, r.Checkpoint(), "it is loaded and closed")
		require.NoError(t, r.Close())
	}
	requireSame(t, whole(t, 20), dir)
}

func TestNoRoomIsFoundAtTheStart(t *testing.T) {
	o := options(20)
	o.FreeBytes = func(string) (uint64, error) { return 10, nil }
	y := newToy(20)
	dir := filepath.Join(t.TempDir(), "run")
	err := session(bg, dir, New, o, y)
	require.ErrorContains(t, err, "no room for a checkpoint")
	require.Zero(t, y.adam.Steps)
	require.NoError(t, session(bg, dir, New, options(1), newToy(1)), "nothing is in the way of another try")
}

func TestLostMetricsAreReported(t *testing.T) {
	dir := t.TempDir()
	o := options(20)
	o.StopAfter = 10
	require.NoError(t, session(bg, dir, New, o, newToy(20)))
	lines := strings.SplitAfter(read(t, dir, MetricsFile), "\n")
	require.NoError(t, os.WriteFile(filepath.Join(dir, MetricsFile), []byte(strings.Join(lines[:4], "")), 0o644))
	var out bytes.Buffer
	o.Progress = &runlog.Progress{W: &out, Now: time.Now}
	require.NoError(t, session(bg, dir, Resume, o, newToy(20)))
	require.Contains(t, out.String(), "ends at step 4, the checkpoint is at step 10")
}

// A time limit saves, evaluates and stops; the rest of the schedule follows on
// resume and ends where an undisturbed run ends.
func TestTimeLimit(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	o := options(20)
	now := time.Unix(0, 0)
	o.Now = func() time.Time { return now }
	o.MaxTime = 7 * time.Second
	y := newToy(20)
	y.each = func(int) { now = now.Add(time.Second) }
	require.NoError(t, session(bg, dir, New, o, y))
	x := index(t, dir)
	require.Equal(t, 7, x.Last.Step)
	require.Equal(t, 7, x.Evaluated)
	require.Contains(t, read(t, dir, SessionsFile), "stopped before the end of the schedule")
	require.NotContains(t, read(t, dir, SessionsFile), "finished")
	require.NoError(t, session(bg, dir, Resume, options(20), newToy(20)))
	require.Equal(t, 20, index(t, dir).Last.Step)
	whole := filepath.Join(t.TempDir(), "run")
	require.NoError(t, session(bg, whole, New, options(20), newToy(20)))
	require.Equal(t, digest(t, whole), digest(t, dir))
}
