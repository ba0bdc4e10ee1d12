package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"deeploop/internal/checkpoint"
	"deeploop/internal/cli"
	"deeploop/internal/command"
	"deeploop/internal/command/commandtest"
	"deeploop/internal/runlog"
	"deeploop/lm"
	"deeploop/lm/corpus"
)

// lmProgram is the program under test; ok runs a command line that must
// succeed, and fails one that must end with a code.
var (
	lmProgram = commandtest.Program(run)
	ok        = lmProgram.OK
	fails     = lmProgram.Fails
	digest    = lmProgram.Digest
	readFile  = commandtest.Read
)

func TestMain(m *testing.M) { lmProgram.Main(m, smallExample) }

const trainTiny = "train --preset testing --data sample --precision fp32 --threads 1 "

// metrics returns what a run noted.
func metrics(t *testing.T, run string) []runlog.Line {
	t.Helper()
	lines, err := runlog.Read(filepath.Join(run, "metrics.jsonl"))
	require.NoError(t, err)
	return lines
}

// However often it is stopped, a run leaves the same bytes.
func TestT26ResumeIsBitIdentical(t *testing.T) {
	for name, flags := range map[string]string{
		"plain":    "",
		"switches": "--grad-accum 3 --ema --checkpoint-loops --loops 3 --kappa-steps 4 --eval-loops 1,5 --context 16 ",
	} {
		t.Run(name, func(t *testing.T) {
			t.Chdir(t.TempDir())
			lmProgram.Resumes(t, program, trainTiny+flags+"--checkpoint-interval 3 --eval-steps 8 --eval-tokens 300", 9)
		})
	}
}

func TestTrainInterruptedSavesAndSaysHowToGoOn(t *testing.T) {
	t.Chdir(t.TempDir())
	_, errs := lmProgram.Interrupted(t, trainTiny+"--steps 1000000 --eval-steps 1000000 --run runs/long", "runs/long/metrics.jsonl", "loss")
	require.Contains(t, errs, "continue with: lm train --run runs/long --resume")
	ok(t, "train --resume --stop-after 1") // the newest run
}

// A run on nothing but the program: the sample text, in seconds, learns.
func TestTrainOnTheSampleLowersTheLoss(t *testing.T) {
	t.Chdir(t.TempDir())
	out, errs := ok(t, "train --preset testing --steps 300 --eval-steps 100 --eval-loops 1,4 --run runs/a")
	for _, want := range []string{
		"training on the embedded sample text", "model: 14656 trained parameters", "1 block, 2 loops, placement deeploop, N=2, alpha=2, beta=0.25",
		"a step reads 128 tokens (4 sequences of 32)", "per token: blocks 49 kFLOP, attention 8.19 kFLOP, head 4.42 kFLOP",
		"--data=sample", "tok/s", "grad ", "% of ceiling", "bits/byte ", "at R=1 ", "at R=4 ", "finished at step 300 of 300",
	} {
		require.Contains(t, errs, want)
	}
	require.True(t, strings.HasPrefix(strings.SplitN(errs, "\n", 3)[1], "kernel "), errs)
	require.Contains(t, out, "next             lm generate --run runs/a")
	var evals []runlog.Line
	for _, l := range metrics(t, "runs/a") {
		if l.Event == runlog.Eval {
			evals = append(evals, l)
		}
	}
	require.Len(t, evals, 3)
	first, last := evals[0].Values, evals[2].Values
	require.Less(t, last["loss"], first["loss"]-0.05)
	require.Less(t, last["loss"], 3.2)
	require.InDelta(t, last["loss"]/0.6931472, last["bits_per_byte"], 0.05, "characters of the sample are bytes, but for a few")
	require.Contains(t, last, "loss_r1")
	require.Contains(t, last, "loss_r4")
	x, err := (&checkpoint.Store{Dir: "runs/a/checkpoints"}).Index()
	require.NoError(t, err)
	require.Equal(t, lm.SelectionMetric, x.Best.Metric)
	require.Equal(t, min(evals[0].Values["loss"], evals[1].Values["loss"], last["loss"]), x.Best.Value, "the lowest is the best")
}

// The same seed, kernel and thread count give the same numbers.
func TestMetricsAreThoseOfTheThreadCount(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, threads := range []string{"1", "2"} {
		args := "train --preset testing --data sample --ema --kappa-steps 5 --steps 12 --eval-tokens 200 --threads " + threads + " --run runs/"
		ok(t, args+"a --force")
		ok(t, args+"b --force --profile")
		require.Equal(t, readFile(t, "runs/a/metrics.jsonl"), readFile(t, "runs/b/metrics.jsonl"), threads)
		require.Equal(t, digest(t, "runs/a"), digest(t, "runs/b"))
		require.FileExists(t, "runs/b/"+command.ProfileFile)
	}
	ok(t, "train --preset testing --data sample --seed 1 --steps 12 --eval-tokens 200 --threads 1 --run runs/c")
	require.NotEqual(t, digest(t, "runs/a"), digest(t, "runs/c"))
}

func TestTrainStopsOnBrokenNumbers(t *testing.T) {
	t.Chdir(t.TempDir())
	msg := fails(t, cli.ExitFailure, trainTiny+"--steps 300 --lr 10 --weight-decay 1000 --grad-clip 0 --lr-warmup-steps 0 --checkpoint-interval 1 --eval-steps 1000 --run runs/boom")
	require.Regexp(t, `step \d+`, msg)
	require.Regexp(t, `NaN|Inf|not finite`, msg)
	require.Contains(t, msg, "stopped without saving")
	require.Contains(t, msg, "last good checkpoint")
	ok(t, "inspect runs/boom --digest") // it is whole
}

// A checkpoint alone has all that is needed to use its model.
func TestCheckpointsCarryTheTokenizer(t *testing.T) {
	t.Chdir(t.TempDir())
	commandtest.Write(t, "text.txt", strings.Repeat("the quick brown föx. ", 100))
	ok(t, "prepare --input text.txt --tokenizer char --out data/fox")
	ok(t, "train --preset testing --steps 2 --run runs/a --eval-tokens 50") // the newest dataset
	hash := func(dir string) string {
		m, err := corpus.ReadManifest(dir)
		require.NoError(t, err)
		return m.DatasetHash
	}("data/fox")
	require.Equal(t, readFile(t, "data/fox/tokenizer.json"), readFile(t, "runs/a/tokenizer.json"))
	require.NoError(t, os.RemoveAll("data"))
	require.NoError(t, os.Remove("runs/a/tokenizer.json"))
	ck, err := checkpoint.OpenFound("runs/a", checkpoint.LastSaved)
	require.NoError(t, err)
	defer ck.Close()
	require.Equal(t, hash, ck.Meta().DatasetHash)
	tok, err := checkpointTokenizer(ck)
	require.NoError(t, err)
	require.Equal(t, "föx", string(tok.AppendBytes(nil, tok.Append(nil, []byte("föx"))...)))
	c, err := lm.CheckpointConfig(ck)
	require.NoError(t, err)
	require.Equal(t, tok.VocabSize(), c.Arch.VocabSize)
}

func TestTrainNeverTouchesARunUnasked(t *testing.T) {
	t.Chdir(t.TempDir())
	args := trainTiny + "--steps 2 --eval-tokens 50 --run runs/a "
	ok(t, args)
	before := digest(t, "runs/a")
	msg := fails(t, cli.ExitUsage, args+"--seed 9")
	require.Contains(t, msg, "--resume")
	require.Contains(t, msg, "--force")
	msg = fails(t, cli.ExitUsage, args+"--resume --lr 0.5 --loops 3")
	require.Contains(t, msg, "lr: 0.01, now 0.5")
	require.Contains(t, msg, "arch.loops: 2, now 3")
	require.Equal(t, before, digest(t, "runs/a"))
	ok(t, args+"--seed 9 --force")
	require.NotEqual(t, before, digest(t, "runs/a"))
	ok(t, args+"--seed 9 --resume --steps 4 --eval-loops 7 --keep 2")
}

// What only evaluations are made of may change, with a warning, and leaves the
// training as it is.
func TestResumeWithOtherEvaluations(t *testing.T) {
	t.Chdir(t.TempDir())
	args := trainTiny + "--steps 8 --eval-steps 2 --eval-tokens 50 --run runs/"
	ok(t, args+"whole")
	ok(t, args+"a --stop-after 4")
	_, errs := ok(t, "train --run runs/a --resume --stop-after 2 --quiet")
	require.Empty(t, errs)
	_, errs = ok(t, "train --run runs/a --resume --eval-tokens 70 --eval-steps 1 --eval-loops 3 --keep 2 --quiet")
	require.Contains(t, errs, "eval_tokens: 50, now 70: evaluations read another part of the validation split, so the best checkpoint is chosen anew\n")
	require.Contains(t, errs, "eval_steps: 2, now 1: ")
	require.Contains(t, errs, `eval_loops: none, now ["3"]: `)
	require.NotContains(t, errs, "keep")
	require.Equal(t, digest(t, "runs/whole"), digest(t, "runs/a"))
	x, err := (&checkpoint.Store{Dir: "runs/a/checkpoints"}).Index()
	require.NoError(t, err)
	require.Greater(t, x.Best.Step, 6, "of 50 tokens none is the best of 70")

	msg := fails(t, cli.ExitUsage, "train --run runs/a --resume --grad-clip 9 --quiet")
	require.Contains(t, msg, "(grad_clip: 1, now 9)")
	require.Equal(t, 1, strings.Count(msg, "\n"), msg)
}

// The page about runs says what --resume does with other settings.
func TestSettingsOfAResumedRunAreDocumented(t *testing.T) {
	var keys []string
	for _, f := range newTrainSettings().Fields() {
		keys = append(keys, f.Key)
	}
	commandtest.ResumeTable(t, mayChange(), keys)
}

// Data that cannot be trained on is refused in words, before a folder is made.
func TestTrainRefusesDataThatDoesNotFit(t *testing.T) {
	t.Chdir(t.TempDir())
	commandtest.Write(t, "short.txt", "twenty characters ..")
	ok(t, "prepare --input short.txt --tokenizer char --out data/short")
	commandtest.Write(t, "other.txt", strings.Repeat("0123456789", 100))
	ok(t, "prepare --input other.txt --tokenizer char --out data/other")
	ok(t, "prepare --input other.txt --tokenizer byte --out data/bytes")
	commandtest.Write(t, "more.txt", strings.Repeat("9876543210", 100))
	ok(t, "prepare --input more.txt --tokenizer char --out data/more")
	commandtest.Write(t, "arc/manifest.json", `{"format":"deeploop ARC dataset","version":1}`)
	commandtest.Write(t, "empty/x", "")
	commandtest.Write(t, "odd.bin", "123")
	ok(t, "train --preset testing --data data/other --steps 2 --run runs/a")
	for line, says := range map[string]string{
		"--data data/short --run runs/x":                                 "its training split has 18 tokens, a sequence of arch.context 32 and what follows it need 33; use a smaller --context",
		"--data data/other --kappa-steps 5 --run runs/x":                 "kappa_steps needs a batch of validation tokens, 129",
		"--data arc --run runs/x":                                        "deeploop ARC dataset",
		"--data empty --run runs/x":                                      "run lm prepare",
		"--data nowhere --run runs/x":                                    "nowhere",
		"--data odd.bin --run runs/x":                                    "odd.bin",
		"--data sample --hidden-size 65536 --layers 1000 --run runs/x":   "GB of memory, this machine has",
		"--data sample --batch-size 1000000 --context 4096 --run runs/x": "checkpoint_loops",
		"--data sample --context 200000 --run runs/x":                    "use a smaller --context",
		"--data sample --kernel sse --run runs/x":                        "expected one of",
		"--data sample --precision fp16 --run runs/x":                    "precision",
		"--data sample --eval-loops 1,x --run runs/x":                    "eval_loops is x, expected whole numbers from 1",
		"--data sample --eval-loops 0 --run runs/x":                      "eval_loops",
		"--data sample --num-heads 5 --run runs/x":                       "arch.num_heads is 5, expected a divisor of hidden_size 32 (chosen at --num-heads)",
		"--data sample --placement middle --run runs/x":                  "arch.placement",
		"--data sample --placement prenorm --p 0.5 --run runs/x":         "placement prenorm has no residual scaling",
		"--data sample --inner-norm --placement deepnorm --run runs/x":   "arch.inner_norm",
		"--data sample --mlp relu --run runs/x":                          "arch.mlp",
		"--data sample --kappa-steps -1 --run runs/x":                    "kappa_steps is -1",
		"--data sample --kappa-group 2 --run runs/x":                     "kappa_group is 2, expected none for a model of 2 loops",
		"--data sample --steps 0 --run runs/x":                           "steps is 0",
		"--data sample --set arch.vocab_size=7 --run runs/x":             "it comes from the dataset's tokenizer",
		"--data sample --set arch.lopes=7 --run runs/x":                  "did you mean arch.loops?",
		"--data sample --lops 7 --run runs/x":                            "did you mean --loops?",
		"--data sample --steps many --run runs/x":                        "expected a whole number",
		"--data sample --stop-after -1 --run runs/x":                     "--stop-after is -1",
		"--data sample --minutes -1 --run runs/x":                        "--minutes is -1",
		"--data sample --resume --force --run runs/x":                    "choose one",
		"--data sample --threads 9999999 --run runs/x":                   "threads",
		"--data sample --config nowhere.yaml --run runs/x":               "nowhere.yaml",
		"--data sample loops=3":                                          "write --set loops=3",
		"--data sample --force --run empty":                              "holds no run",
	} {
		code, out, errs := lmProgram.Call(append([]string{"train", "--preset", "testing"}, strings.Fields(line)...)...)
		require.Equal(t, cli.ExitUsage, code, "%s\n%s", line, errs)
		require.Empty(t, out, line)
		require.Contains(t, errs, says, line)
		require.NoDirExists(t, "runs/x", line)
	}
	require.Contains(t, fails(t, cli.ExitUsage, "train --data data/bytes --resume --run runs/a"),
		"the run's model has a vocabulary of 10, the dataset's byte tokenizer needs 257; name the dataset it was trained on with --data")
	require.Contains(t, fails(t, cli.ExitUsage, "train --data data/bytes --resume --run runs/a --preset testing --steps 2"), "arch.vocab_size: 10, now 257")
	require.Contains(t, fails(t, cli.ExitUsage, "train --data data/more --resume --run runs/a"), "name the dataset it was trained on with --data, or start another run")
	require.Contains(t, fails(t, cli.ExitUsage, "train --preset huge"), "one of gpt2-medium, gpt2-small, laptop, testing")
	require.Contains(t, fails(t, cli.ExitUsage, "train --data sample --resume --run empty --preset testing --steps 1 --stop-after -3"), "-3")
}

// Runs of the other program are not taken for the newest.
func TestRunsOfTheOtherKind(t *testing.T) {
	t.Chdir(t.TempDir())
	ok(t, trainTiny+"--steps 2 --eval-tokens 50 --run runs/mine")
	var set checkpoint.Set
	set.Tensor(checkpoint.Weights, "w", []int{1}, []float32{1})
	_, err := (&checkpoint.Store{Dir: "runs/theirs/checkpoints"}).Save(1, checkpoint.Meta{Kind: "hrm", Config: json.RawMessage("{}")}, &set)
	require.NoError(t, err)
	commandtest.Write(t, "runs/theirs/metrics.jsonl", "")
	out, _ := ok(t, "inspect")
	require.Contains(t, out, "runs/mine")
	require.Contains(t, out, "placement: deeploop")
	ok(t, trainTiny+"--steps 2 --eval-tokens 50 --layers 4 --loops 1 --kappa-steps 1 --kappa-group 2 --run runs/mine --force")
	metrics, err := os.ReadFile("runs/mine/metrics.jsonl")
	require.NoError(t, err)
	require.Contains(t, string(metrics), "kappa_cosine_mean", "an untied model in groups has visits to compare")
	out, _ = ok(t, "plot --metric kappa_G")
	require.Equal(t, "runs/mine/curves.png\n", out)
	require.FileExists(t, "runs/mine/curves.png")
	require.Contains(t, fails(t, cli.ExitUsage, "train --run runs/theirs --resume"), "holds a run of hrm train")
	require.Contains(t, fails(t, cli.ExitUsage, "plot --metric lm_loss"), "metrics.jsonl lists them")
	require.Contains(t, fails(t, cli.ExitUsage, "plot --out x.gif"), ".png, .svg or .pdf")
}

// Without a validation split nothing is evaluated.
func TestTrainWithoutValidation(t *testing.T) {
	t.Chdir(t.TempDir())
	commandtest.Write(t, "text.txt", strings.Repeat("all of it is to train on. ", 40))
	ok(t, "prepare --input text.txt --tokenizer byte --val-fraction 0 --out data/all")
	_, errs := ok(t, trainTiny+"--data data/all --steps 2 --run runs/a")
	require.Contains(t, errs, "nothing is evaluated")
	_, errs = ok(t, trainTiny+"--eval-steps 0 --steps 3 --run runs/b --minutes 5")
	require.Contains(t, errs, "evaluation at step 3")
	require.NotContains(t, errs, "evaluation at step 2")
}
