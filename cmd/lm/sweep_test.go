package main

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"deeploop/internal/cli"
	"deeploop/internal/command/commandtest"
	"deeploop/internal/tensorboard/tensorboardtest"
)

const sweepFile = `
train: --preset testing --data sample --precision fp32
seeds: [1, 2]
parallel: 2
threads: 1
minutes: 0.1
then: ["eval --run {run} --json --quiet"]
metrics: [loss, then.results.0.loss]
settings:
  - {name: one, train: --loops 1}
  - {name: two, train: --loops 2, seeds: [7]}
`

func TestSweep(t *testing.T) {
	t.Chdir(t.TempDir())
	commandtest.Write(t, "loops.yaml", sweepFile)
	commandtest.AsProgram(t) // 4 steps

	out, errs := ok(t, "sweep loops.yaml --dry-run")
	require.Contains(t, errs, "sweep loops: 2 settings, 3 runs, 0 of them finished; 2 at a time; about 9s")
	require.Contains(t, out, "lm train --preset testing --data sample --precision fp32 --loops 2 --threads=1 --seed=7 --run=runs/loops/two-seed7\n")
	require.Contains(t, out, "| one | 0 of 2 | not run yet | not run yet |")
	require.Contains(t, fails(t, cli.ExitUsage, "sweep loops.yaml --plot table"), "draw table: table does not say the format")
	require.NoDirExists(t, "runs")

	out, errs = ok(t, "sweep loops.yaml --minutes 0.0000001 --plot loops.svg") // as good as no time
	require.Contains(t, errs, "no run is finished, so loops.svg is not written")
	require.Contains(t, out, "not run yet")
	const tiny = " --steps 4 --eval-steps 2 --checkpoint-interval 1 --eval-tokens 600 --hidden-size 32 --num-heads 2 --layers 2 --batch-size 1 "
	ok(t, "train --preset testing --data sample --precision fp32 --loops 1 --threads 1 --seed 1"+tiny+"--stop-after 2 --run runs/loops/one-seed1") // begun

	out, errs = ok(t, "sweep loops.yaml")
	require.Contains(t, errs, "runs/loops/one-seed2: finished after")
	require.Contains(t, out, "| one | 2 of 2 | ")
	require.Contains(t, out, " ± ")
	require.Contains(t, out, "| two | 1 of 1 | ")
	require.Contains(t, readFile(t, "runs/loops/one-seed1/sessions.jsonl"), `"resume"`)

	// An ordinary run with the same settings is the same.
	ok(t, "train --preset testing --data sample --precision fp32 --loops 2 --threads 1 --seed 7"+tiny+"--run runs/alone")
	require.Equal(t, digest(t, "runs/alone"), digest(t, "runs/loops/two-seed7"))

	before, err := os.Stat("runs/loops/one-seed1/metrics.jsonl")
	require.NoError(t, err)
	out, errs = ok(t, "sweep loops.yaml --json --plot loops.svg") // nothing is left to do
	require.NotContains(t, errs, "training")
	require.Contains(t, errs, "wrote loops.svg")
	for _, text := range []string{">loops: loss<", ">loops: then.results.0.loss<", ">one<", ">two<"} {
		require.Contains(t, readFile(t, "loops.svg"), text)
	}
	after, err := os.Stat("runs/loops/one-seed1/metrics.jsonl")
	require.NoError(t, err)
	require.Equal(t, before.ModTime(), after.ModTime())
	var doc struct {
		Settings []struct {
			Setting string
			Seeds   []int
			Metrics map[string]struct {
				Values   []float64
				Mean, SD *float64
			}
		}
	}
	require.NoError(t, json.Unmarshal([]byte(out), &doc))
	one := doc.Settings[0]
	require.Equal(t, []int{1, 2}, one.Seeds)
	loss := one.Metrics["loss"]
	require.InDelta(t, (loss.Values[0]+loss.Values[1])/2, *loss.Mean, 1e-12)
	require.InDelta(t, max(loss.Values[0]-loss.Values[1], loss.Values[1]-loss.Values[0])/1.4142135623730951, *loss.SD, 1e-9, "that of a sample")
	require.Len(t, one.Metrics["then.results.0.loss"].Values, 2)
	require.Nil(t, doc.Settings[1].Metrics["loss"].SD)
}

func TestSweepMistakes(t *testing.T) {
	t.Chdir(t.TempDir())
	for text, want := range map[string]string{
		"\n":                             "the file is empty",
		"metrics: [loss]\n":              "there are no settings",
		"metrics: [loss]\nsetings: []\n": "setings",
		"settings: [{name: a}]\n":        "metrics is empty",
		"metrics: [loss]\nsettings: [{name: a}, {name: a}]\n":       "two settings are called a",
		"metrics: [loss]\nsettings: [{name: ../a}]\n":               `name is "../a"`,
		"metrics: [loss]\nsettings: [{name: a, train: --seed 3}]\n": "--seed is given by the sweep itself",
		"metrics: [then.x]\nsettings: [{name: a}]\n":                "needs a command below then",
		"metrics: [loss]\nparallel: 0\nsettings: [{name: a}]\n":     "parallel is 0",
		"metrics: [loss]\nsettings: [{name: a}]\nname: \"a b\"\n":   `name is "a b"`,
	} {
		commandtest.Write(t, "s.yaml", text)
		require.Contains(t, fails(t, cli.ExitUsage, "sweep s.yaml"), want, text)
	}
	commandtest.Write(t, "s.yaml", "metrics: [loss]\nseeds: [1, 2, 1]\nsettings: [{name: a}]\n")
	require.Contains(t, fails(t, cli.ExitUsage, "sweep s.yaml"), "seed 1 of setting a is there twice")
	commandtest.Write(t, "s.yaml", "metrics: [loss]\nseeds: []\nsettings: [{name: a}]\n")
	require.Contains(t, fails(t, cli.ExitUsage, "sweep s.yaml"), "there are no seeds")
	require.Contains(t, fails(t, cli.ExitUsage, "sweep nosuch.yaml"), "looked in")
	require.Contains(t, fails(t, cli.ExitUsage, "sweep"), "name one file")

	commandtest.AsProgram(t)
	commandtest.Write(t, "s.yaml", "metrics: [loss]\nsettings:\n  - name: a\n    train: --loops x")
	msg := fails(t, cli.ExitUsage, "sweep s.yaml") // what a run says is the reason
	require.Contains(t, msg, "lm: runs/s/a-seed0: lm: ")
	require.Contains(t, msg, `arch.loops is "x"`)
}

// --tensorboard of a sweep is no part of its runs.
func TestSweepWithEventFiles(t *testing.T) {
	t.Chdir(t.TempDir())
	commandtest.Write(t, "loops.yaml", sweepFile)
	commandtest.AsProgram(t)
	_, errs := ok(t, "sweep loops.yaml --tensorboard tb --log-format json")
	for line := range strings.Lines(errs) {
		require.True(t, json.Valid([]byte(line)), line)
	}
	for _, run := range []string{"one-seed1", "one-seed2", "two-seed7"} {
		require.Equal(t, shownOf(metrics(t, "runs/loops/"+run)), tensorboardtest.Shown(t, "tb/loops/"+run))
	}
	_, errs = ok(t, "sweep loops.yaml")
	require.NotContains(t, errs, "training", "all are finished, asked for with event files or without")
}

// A run is not taken for one of flags that the file was given later: what a
// resumed training keeps of its own, and what it may change, would be measured
// as if it had begun so.
func TestSweepOfAnEditedFile(t *testing.T) {
	t.Chdir(t.TempDir())
	commandtest.AsProgram(t)
	file := func(flags string) {
		commandtest.Write(t, "s.yaml", "train: --preset testing --data sample --precision fp32\nmetrics: [loss]\nsettings:\n  - {name: a, train: "+flags+"}\n")
	}
	file("--lr 1e-3")
	ok(t, "sweep s.yaml")
	result := readFile(t, "runs/s/a-seed0/sweep.json")
	for _, other := range []string{"--lr 1e-2", "--loops 2", "--eval-tokens 700"} {
		file(other)
		for _, line := range []string{"sweep s.yaml", "sweep s.yaml --dry-run"} {
			msg := fails(t, cli.ExitUsage, line)
			require.Contains(t, msg, "begun with other flags")
			require.Contains(t, msg, "--lr 1e-3")
			require.Contains(t, msg, "remove runs/s/a-seed0")
		}
		require.Equal(t, result, readFile(t, "runs/s/a-seed0/sweep.json"))
	}
	require.NoError(t, os.RemoveAll("runs/s/a-seed0"))
	ok(t, "sweep s.yaml")
	require.NotEqual(t, result, readFile(t, "runs/s/a-seed0/sweep.json"))
	// Runs that were begun before the command was noted.
	require.NoError(t, os.Remove("runs/s/a-seed0.command"))
	ok(t, "sweep s.yaml")
	file("--lr 1e-3")
	require.Contains(t, fails(t, cli.ExitUsage, "sweep s.yaml"), "begun with other flags")
}

// Other commands below then measure anew.
func TestSweepMeasuresByTheCommandsOfTheFile(t *testing.T) {
	t.Chdir(t.TempDir())
	commandtest.AsProgram(t)
	file := func(loops string) {
		commandtest.Write(t, "s.yaml", "train: --preset testing --data sample --precision fp32\nthen: [\"eval --run {run} --json --quiet --loops "+loops+"\"]\nmetrics: [then.results.0.loss]\nsettings:\n  - {name: a}\n")
	}
	file("1")
	one, _ := ok(t, "sweep s.yaml")
	file("2")
	two, _ := ok(t, "sweep s.yaml")
	require.NotEqual(t, one, two)
	_, errs := ok(t, "sweep s.yaml")
	require.Contains(t, errs, "1 setting, 1 run, 1 of them finished")
	require.NotContains(t, errs, "training")
	commandtest.Write(t, "s.yaml", strings.Replace(readFile(t, "s.yaml"), "results.0.loss", "results.1.loss", 1))
	require.Contains(t, fails(t, cli.ExitUsage, "sweep s.yaml"), "there is no number at results.1.loss")
}

// Why a run failed is said whole, and at once while others go on.
func TestSweepSaysWhyARunFailed(t *testing.T) {
	t.Chdir(t.TempDir())
	commandtest.AsProgram(t)
	commandtest.Write(t, "s.yaml", "train: --preset testing --data sample\nparallel: 2\nmetrics: [loss]\nsettings:\n  - {name: a}\n  - {name: b}\n")
	ok(t, "train --preset testing --data sample --lr 1e-4 --steps 4 --eval-steps 2 --checkpoint-interval 1 --eval-tokens 600 --stop-after 2 --run runs/s/b-seed0")
	msg := fails(t, cli.ExitUsage, "sweep s.yaml")
	require.Contains(t, msg, "settings differ from those of the run")
	require.Contains(t, msg, "lr: ")
	require.Contains(t, msg, "runs/s/a-seed0 goes on")
}

// A killed sweep leaves no training behind.
func TestKilledSweepEndsItsTraining(t *testing.T) {
	t.Chdir(t.TempDir())
	commandtest.SweepKilled(t, "--preset testing --data sample --precision fp32 --threads 1")
}

// The file that the help shows can be swept as it is written.
func TestSweepOfTheHelp(t *testing.T) {
	t.Chdir(t.TempDir())
	lmProgram.SweepOfTheHelp(t, sweepExample)
}
