package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"deeploop/hrm"
	"deeploop/internal/checkpoint"
	"deeploop/internal/cli"
	"deeploop/internal/command/commandtest"
)

// hrmProgram is the program under test; ok runs a command line that must
// succeed, and fails one that must end with a code.
var (
	hrmProgram = commandtest.Program(run)
	runHRM     = hrmProgram.Call
	ok         = hrmProgram.OK
	fails      = hrmProgram.Fails
	digest     = hrmProgram.Digest
	readFile   = commandtest.Read
)

// workFolder changes into an empty folder with a small dataset in data/small.
func workFolder(t *testing.T) {
	t.Helper()
	t.Chdir(t.TempDir())
	require.NoError(t, os.WriteFile("tasks.txt", []byte("mirror-sideways-square\nhalo\n"), 0o644))
	ok(t, "build-data --num-aug 3 --tasks tasks.txt --out data/small")
}

const trainTiny = "train --preset testing --data data/small --precision fp32 --threads 1 --eval-augmentations 0 "

// However often it is stopped, a run leaves the same bytes.
func TestT26ResumeIsBitIdentical(t *testing.T) {
	workFolder(t)
	hrmProgram.Resumes(t, program, trainTiny+"--ema --checkpoint-interval 3 --eval-steps 8", 12)
}

func TestTrainInterruptedSavesAndSaysHowToGoOn(t *testing.T) {
	workFolder(t)
	_, errs := interruptedTraining(t, "")
	require.Contains(t, errs, "continue with: hrm train --run runs/long --resume")
	ok(t, "train --run runs/long --resume --stop-after 1")
}

// interruptedTraining stops a long training in runs/long, with these flags too,
// after its first steps and returns what it wrote.
func interruptedTraining(t *testing.T, flags string) (stdout, stderr string) {
	t.Helper()
	return hrmProgram.Interrupted(t, trainTiny+"--steps 100000 --eval-steps 100000 --run runs/long "+flags, "runs/long/metrics.jsonl", "loss")
}

func TestTrainNeverTouchesARunUnasked(t *testing.T) {
	workFolder(t)
	args := trainTiny + "--steps 2 --run runs/a "
	_, errs := ok(t, args)
	require.True(t, strings.HasPrefix(errs, "kernel "), "the kernel and its reason come first: %s", errs)
	require.Contains(t, errs, "alpha=1, beta=1")
	before := digest(t, "runs/a")

	msg := fails(t, cli.ExitUsage, args+"--seed 9")
	require.Contains(t, msg, "--resume")
	require.Contains(t, msg, "--force")
	require.Equal(t, before, digest(t, "runs/a"))

	msg = fails(t, cli.ExitUsage, args+"--resume --lr 0.5")
	require.Contains(t, msg, "lr: 0.001, now 0.5")
	require.Equal(t, before, digest(t, "runs/a"))

	ok(t, args+"--seed 9 --force")
	require.NotEqual(t, before, digest(t, "runs/a"))

	_, errs = ok(t, trainTiny+"--steps 2 --run runs/b --resume")
	require.Contains(t, errs, "starting from the beginning")
	require.Equal(t, before, digest(t, "runs/b"))
}

func TestTrainRefusalsLeaveNothing(t *testing.T) {
	workFolder(t)
	for line, says := range map[string]string{
		"train --data nowhere":                                            "hrm build-data",
		trainTiny + "--kernel sse":                                        "expected one of",
		trainTiny + "--hidden-size 31":                                    "num_heads",
		trainTiny + "--global-batch-size 100000":                          "smaller global_batch_size",
		trainTiny + "--epochs 1 --eval-interval 1 --global-batch-size 50": "less than one step",
		trainTiny + "--placement deeploop --p-H=-1":                       "p_H",
		trainTiny + "--steps 5 --reset-task-embedding=1":                  "did you mean --reset-task-embeddings?",
	} {
		code, out, errs := runHRM(strings.Fields(line)...)
		require.NotEqual(t, cli.ExitOK, code, line)
		require.Empty(t, out, line)
		require.Contains(t, errs, says, line)
	}
	runs, err := filepath.Glob("runs/*/*")
	require.NoError(t, err)
	require.Empty(t, runs)
}

func TestTrainKernelFromTheEnvironment(t *testing.T) {
	workFolder(t)
	t.Setenv("DEEPLOOP_KERNEL", "ref")
	const args = trainTiny + "--steps 1 --hidden-size 4 --num-heads 1 --global-batch-size 1 --H-cycles 1 --L-cycles 1 --halt-max-steps 1 "
	_, errs := ok(t, args+"--run runs/env")
	require.Contains(t, errs, "kernel ref")
	require.Contains(t, errs, "DEEPLOOP_KERNEL")
	_, errs = ok(t, "eval --run runs/env --augmentations 0")
	require.Contains(t, errs, "kernel ref")

	t.Setenv("DEEPLOOP_KERNEL", "mmx")
	require.Contains(t, fails(t, cli.ExitUsage, args+"--run runs/env2"), "DEEPLOOP_KERNEL")
	ok(t, args+"--run runs/flag --kernel ref") // the flag is stronger
}

// T16: other identifiers are refused by count, T17: also when only their
// names differ; nothing is reset unless asked.
func TestT16T17OtherIdentifiersAreRefused(t *testing.T) {
	workFolder(t)
	ok(t, "build-data --num-aug 4 --tasks tasks.txt --out data/more")
	ok(t, "build-data --num-aug 3 --seed 7 --tasks tasks.txt --out data/names")
	ok(t, trainTiny+"--steps 2 --run runs/a")
	before := digest(t, "runs/a")

	more := fails(t, cli.ExitUsage, "train --run runs/a --resume --steps 4 --data data/more")
	require.Contains(t, more, "checkpoint built for 9 ids, dataset has 11; use --reset-task-embeddings")
	other := fails(t, cli.ExitUsage, "train --run runs/a --resume --steps 4 --data data/names")
	require.Contains(t, other, "9 ids")
	require.Contains(t, other, "--reset-task-embeddings")
	require.Equal(t, before, digest(t, "runs/a"))
	require.Contains(t, fails(t, cli.ExitUsage, "eval --run runs/a --data data/more"), "9 identifiers")
	require.Contains(t, fails(t, cli.ExitUsage, "eval --run runs/a --data data/names"), "others")

	_, errs := ok(t, "train --run runs/a --resume --steps 4 --data data/more --reset-task-embeddings")
	require.Contains(t, errs, "start afresh")
	ok(t, "eval --run runs/a --augmentations 0")
}

// What only evaluations are made of may change, with a warning, and leaves the
// training as it is.
func TestResumeWithOtherEvaluations(t *testing.T) {
	workFolder(t)
	args := trainTiny + "--steps 4 --eval-steps 1 --run runs/"
	ok(t, args+"whole")
	ok(t, args+"a --stop-after 2")
	_, errs := ok(t, "train --run runs/a --resume --eval-augmentations 1 --eval-steps 2 --keep 2 --quiet")
	require.Contains(t, errs, "eval_augmentations: 0, now 1: evaluations ask other copies of the tasks, so the best checkpoint is chosen anew\n")
	require.Contains(t, errs, "eval_steps: 1, now 2: ")
	require.NotContains(t, errs, "keep")
	require.Equal(t, digest(t, "runs/whole"), digest(t, "runs/a"))
	x, err := (&checkpoint.Store{Dir: "runs/a/checkpoints"}).Index()
	require.NoError(t, err)
	require.Equal(t, 4, x.Best.Step)

	msg := fails(t, cli.ExitUsage, "train --run runs/a --resume --halt-max-steps 3 --quiet")
	require.Contains(t, msg, "(arch.halt_max_steps: 4, now 3)")
	require.Equal(t, 1, strings.Count(msg, "\n"), msg)
}

// The page about runs says what --resume does with other settings.
func TestSettingsOfAResumedRunAreDocumented(t *testing.T) {
	var keys []string
	for _, f := range newTrainSettings().Fields() {
		keys = append(keys, f.Key)
	}
	c := hrm.PresetHRMv1()
	require.NotZero(t, c.EvalInterval)
	commandtest.ResumeTable(t, mayChange(c), keys)
}

func TestTrainStopsOnBrokenNumbers(t *testing.T) {
	workFolder(t)
	msg := fails(t, cli.ExitFailure, trainTiny+"--steps 200 --lr 10 --weight-decay 1000 --lr-warmup-steps 0 --checkpoint-interval 1 --eval-steps 1000 --run runs/boom")
	require.Regexp(t, `step \d+`, msg)
	require.Regexp(t, `NaN|Inf|not finite`, msg)
	require.Contains(t, msg, "last good checkpoint")
	ok(t, "inspect runs/boom --digest") // it is whole
}

func TestTrainWithoutHeldOutTests(t *testing.T) {
	workFolder(t)
	require.NoError(t, os.MkdirAll("in/training", 0o755))
	require.NoError(t, os.WriteFile("in/training/a.json",
		[]byte(`{"train":[{"input":[[1,2]],"output":[[2,1]]}],"test":[{"input":[[3,4]],"output":[[4,3]]}]}`), 0o644))
	ok(t, "build-data --input in --num-aug 8 --max-grid 4 --out data/open")
	_, errs := ok(t, "train --preset testing --data data/open --steps 3 --global-batch-size 2 --run runs/open")
	require.Contains(t, errs, "nothing is evaluated")
	out, _ := ok(t, "eval --run runs/open")
	require.Contains(t, out, "0 rows")
}

func TestWholeWayWithUnlabelledTests(t *testing.T) {
	workFolder(t)
	require.NoError(t, os.WriteFile("x_challenges.json", []byte(
		`{"b":{"train":[{"input":[[1,2]],"output":[[2,1]]}],"test":[{"input":[[3,4]]},{"input":[[5]]}]}}`), 0o644))
	ok(t, "build-data --input x_challenges.json --num-aug 8 --max-grid 4 --out data/kaggle")
	ok(t, "train --preset testing --data data/kaggle --steps 3 --global-batch-size 2 --ema --run runs/k")
	out, _ := ok(t, "eval --run runs/k --weights raw")
	require.Contains(t, out, "no row has an answer")
	require.Contains(t, out, "-raw-aug-all")
	ok(t, "score --submission s.json")
	require.Equal(t, 2, strings.Count(readFile(t, "s.json"), "attempt_2"))

	require.Contains(t, fails(t, cli.ExitUsage, "eval --run runs/k --weights best"), "ema or raw")
	ok(t, trainTiny+"--steps 1 --run runs/raw")
	require.Contains(t, fails(t, cli.ExitUsage, "eval --run runs/raw --weights ema"), "kept no average")
}

func TestEvalChoosesTheBestOrTheLast(t *testing.T) {
	workFolder(t)
	ok(t, trainTiny+"--steps 6 --eval-steps 3 --run runs/a")
	_, errs := ok(t, "eval --last")
	require.Contains(t, errs, "step 6, raw weights")
	require.FileExists(t, "runs/a/eval/step-00000006-raw-aug-all-data-"+openHash(t, "data/small")[:8]+"/predictions.safetensors.zst")
	ckpts, err := filepath.Glob("runs/a/checkpoints/step-*")
	require.NoError(t, err)
	_, errs = ok(t, "eval --augmentations 1 --checkpoint", ckpts[0])
	require.Contains(t, errs, "2 test rows")
	require.Contains(t, fails(t, cli.ExitUsage, "eval --run runs/a --checkpoint x"), "choose one")
	require.Contains(t, fails(t, cli.ExitUsage, "eval --augmentations -2"), "-2")
	require.NoError(t, os.Rename("data/small", "data/gone"))
	require.Contains(t, fails(t, cli.ExitUsage, "eval"), "--data DIR")
	ok(t, "eval --data data/gone")
}
