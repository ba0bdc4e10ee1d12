package main

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"

	"deeploop/internal/command"
	"deeploop/internal/command/commandtest"
	"deeploop/internal/train"
	"deeploop/lm"
)

// plan resolves a train command line the way the command does.
func plan(args ...string) (*command.Plan[lm.TrainConfig], error) {
	o := &trainOptions{Settings: newTrainSettings()}
	fs := pflag.NewFlagSet("train", pflag.ContinueOnError)
	addTrainFlags(fs, o)
	if err := fs.Parse(args); err != nil {
		return nil, err
	}
	p, err := training.Plan(o, time.Date(2026, 11, 30, 5, 4, 3, 0, time.UTC))
	if err != nil {
		return nil, err
	}
	return p, training.Describe(p, o)
}

func TestPlanDefaults(t *testing.T) {
	t.Chdir(t.TempDir())
	commandtest.Write(t, "data/arc/manifest.json", `{"format":"deeploop ARC dataset","version":1}`)
	p, err := plan()
	require.NoError(t, err)
	require.Equal(t, lm.PresetLaptop(), p.Config, "data of the other program is none")
	require.Equal(t, filepath.Join("runs", "20261130-050403-laptop"), p.Run)
	require.Equal(t, train.New, p.How)
	require.Equal(t, "lm train --preset=laptop", p.Repeat)
	require.Equal(t, "lm train --run runs/20261130-050403-laptop --resume", p.Continue)
	commandtest.Write(t, "text.txt", "some text to prepare as a dataset")
	ok(t, "prepare --input text.txt --tokenizer byte --out data/text")
	p, err = plan("--preset=gpt2-small")
	require.NoError(t, err)
	require.Equal(t, filepath.Join("data", "text"), p.Config.DataPath)
	require.Equal(t, 480*1024, p.Config.TokensPerStep(), "the paper's step")
}

// The printed command and the file in the run's folder both give the run's
// configuration again.
func TestPlanRepeatAndFileGiveTheSameConfiguration(t *testing.T) {
	t.Chdir(t.TempDir())
	require.NoError(t, os.WriteFile("some.yaml", []byte("arch:\n  loops: 7\nlr: 3e-4\neval_loops: [1, 2]\n"), 0o644))
	commandtest.PlanRepeats(t, plan, [][]string{
		{"--preset=testing", "--data", "d x", "--placement=prenorm", "--hidden-size", "64"},
		{"--preset=gpt2-medium", "--placement=deepnorm", "--p=0.3", "--alpha=2"},
		{"--config=some.yaml", "--loops=3", "--eval-loops=1,2,8"},
		{"--placement=deepnorm", "--inner-norm=false", "--mlp=relu2", "--checkpoint-loops", "--kappa-steps=10", "--ema"},
		{"--set", "arch.qk_norm=false", "--set", "grad_accum=4", "--stop-after=3", "--init=gpt2"},
	})
}

func TestRepeatedListsAreReadable(t *testing.T) {
	t.Chdir(t.TempDir())
	p, err := plan("--eval-loops=1,2,8")
	require.NoError(t, err)
	require.Equal(t, "lm train --preset=laptop --eval-loops=1,2,8", p.Repeat)
}

func TestKeysThatFollowPlacement(t *testing.T) {
	t.Chdir(t.TempDir())
	p, err := plan("--placement=prenorm")
	require.NoError(t, err)
	require.Zero(t, p.Config.Arch.P)
	require.False(t, p.Config.Arch.InnerNorm)
	p, err = plan("--placement=deepnorm")
	require.NoError(t, err)
	require.Equal(t, 0.25, p.Config.Arch.P)
}

func TestEveryKeyHasHelpAndAFlag(t *testing.T) {
	flags := map[string]string{}
	for _, f := range newTrainSettings().Fields() {
		require.NotEmpty(t, f.Help, f.Key)
		flags[f.Key] = f.Flag
	}
	for key, flag := range map[string]string{
		"arch.layers": "layers", "arch.loops": "loops", "arch.context": "context", "data_path": "data", "checkpoint_loops": "checkpoint-loops",
		"eval_loops": "eval-loops", "kappa_steps": "kappa-steps", "grad_accum": "grad-accum", "steps": "steps", "seed": "seed",
	} {
		require.Equal(t, flag, flags[key], key)
	}
}

// A run killed before its first checkpoint goes on from the file in its
// folder.
func TestPlanResumesFromTheFile(t *testing.T) {
	t.Chdir(t.TempDir())
	first, err := plan("--preset=testing", "--run=runs/young", "--data=d", "--seed=9", "--loops=4")
	require.NoError(t, err)
	commandtest.Write(t, "runs/young/config.yaml", string(first.YAML))
	commandtest.Write(t, "runs/young/metrics.jsonl", "")
	p, err := plan("--resume")
	require.NoError(t, err)
	require.Equal(t, first.Config, p.Config)
	require.Equal(t, filepath.Join("runs", "young"), p.Run)
}
