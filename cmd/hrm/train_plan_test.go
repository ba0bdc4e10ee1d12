package main

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"

	"deeploop/hrm"
	"deeploop/internal/cli"
	"deeploop/internal/command"
	"deeploop/internal/command/commandtest"
	"deeploop/internal/train"
)

var planTime = time.Date(2026, 11, 30, 5, 4, 3, 0, time.UTC)

// plan resolves a train command line the way the command does.
func plan(args ...string) (*command.Plan[hrm.TrainConfig], error) {
	o := trainOptions{TrainOptions: command.TrainOptions[hrm.TrainConfig]{Settings: newTrainSettings()}}
	fs := pflag.NewFlagSet("train", pflag.ContinueOnError)
	o.addFlags(fs)
	if err := fs.Parse(args); err != nil {
		return nil, err
	}
	t := newTraining(&o)
	p, err := t.Plan(&o.TrainOptions, planTime)
	if err != nil {
		return nil, err
	}
	return p, t.Describe(p, &o.TrainOptions)
}

func TestPlanDefaults(t *testing.T) {
	t.Chdir(t.TempDir())
	commandtest.Touch(t, 5, "data", "a", "manifest.json")
	commandtest.Touch(t, 6, "data", "b", "manifest.json")
	p, err := plan()
	require.NoError(t, err)
	want := hrm.PresetLaptop()
	want.DataPath = filepath.Join("data", "b")
	require.Equal(t, want, p.Config)
	require.Equal(t, filepath.Join("runs", "20261130-050403-laptop"), p.Run)
	require.Equal(t, train.New, p.How)
	require.Equal(t, "hrm train --preset=laptop --data=data/b", p.Repeat)
	require.Equal(t, "hrm train --run runs/20261130-050403-laptop --resume", p.Continue)
}

func TestPlanWithoutDatasetLeavesItEmpty(t *testing.T) {
	t.Chdir(t.TempDir())
	p, err := plan()
	require.NoError(t, err)
	require.Empty(t, p.Config.DataPath)
}

// The printed command and the file in the run's folder both give the run's
// configuration again.
func TestPlanRepeatAndFileGiveTheSameConfiguration(t *testing.T) {
	t.Chdir(t.TempDir())
	c := hrm.PresetTesting()
	c.Arch.HiddenSize, c.Arch.PuzzleEmbDim, c.DataPath, c.Steps = 64, 32, "data/x", 33
	saveTestCheckpoint(t, "runs/old", 12, c, 3)
	require.NoError(t, os.WriteFile("both.yaml", []byte("epochs: 4\nsteps: 3\neval_interval: 2\n"), 0o644))
	commandtest.PlanRepeats(t, plan, [][]string{
		{"--preset=testing", "--data", "d x", "--run=r", "--placement=deeploop", "--epochs=40", "--hidden-size", "64"},
		{"--config=both.yaml"},
		{"--config=both.yaml", "--epochs=8"},
		{"--steps=5", "--epochs=50"},
		{"--eval-interval=10", "--eval-steps=7", "--ema", "--lr=3e-4", "--arch-name=hrm_v1"},
		{"--resume", "--run", "runs/old", "--steps=50"},
		{"--placement=deepnorm", "--p-H=0.3", "--alpha-L=2"},
	})
	first, err := plan("--preset=testing", "--data", "d x", "--epochs=40")
	require.NoError(t, err)
	require.Equal(t, 0, first.Config.Steps, "epochs were chosen")
	require.Equal(t, 0, first.Config.EvalSteps, "evaluation follows eval_interval")
	require.Contains(t, first.Repeat, "'--data=d x'")
}

func TestPlanStepsAndEpochs(t *testing.T) {
	t.Chdir(t.TempDir())
	p, err := plan("--steps=5", "--epochs=500")
	require.NoError(t, err)
	require.Equal(t, 5, p.Config.Steps, "with both, steps is the schedule")
	require.Equal(t, 500, p.Config.Epochs)

	require.NoError(t, os.WriteFile("c.yaml", []byte("steps: 70\nepochs: 500\n"), 0o644))
	p, err = plan("--config=c.yaml")
	require.NoError(t, err)
	require.Equal(t, 70, p.Config.Steps)
	p, err = plan("--config=c.yaml", "--epochs=200")
	require.NoError(t, err)
	require.Equal(t, 0, p.Config.Steps, "the flag is stronger than the file's steps")
	require.Equal(t, 200, p.Config.Epochs)
}

func TestPlanRefusals(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, c := range []struct {
		args []string
		says string
	}{
		{[]string{"--resume", "--force"}, "choose one"},
		{[]string{"--resume"}, "no run below runs"},
		{[]string{"--preset=huge"}, "laptop"},
		{[]string{"--stop-after=-1"}, "-1"},
		{[]string{"--num-heads=5"}, "--num-heads"},
	} {
		_, err := plan(c.args...)
		require.ErrorContains(t, err, c.says, "%v", c.args)
		require.Equal(t, cli.ExitUsage, cli.ExitCode(err), "%v", c.args)
	}
}

func TestPlanResumeStartsFromTheRunsOwnConfiguration(t *testing.T) {
	t.Chdir(t.TempDir())
	c := hrm.PresetTesting()
	c.Arch.HiddenSize, c.Arch.PuzzleEmbDim, c.DataPath, c.Steps = 64, 32, "data/x", 33
	saveTestCheckpoint(t, "runs/old", 12, c, 3)
	commandtest.Touch(t, 5, "runs", "old", train.MetricsFile)

	p, err := plan("--resume")
	require.NoError(t, err)
	require.Equal(t, filepath.Join("runs", "old"), p.Run)
	require.Equal(t, train.Resume, p.How)
	require.Equal(t, c, p.Config)

	p, err = plan("--resume", "--run", "runs/old", "--steps=50", "--threads", "1")
	require.NoError(t, err)
	want := c
	want.Steps, want.Threads = 50, 1
	require.Equal(t, want, p.Config)

	p, err = plan("--resume", "--run", "runs/old", "--preset=testing")
	require.NoError(t, err)
	require.Equal(t, hrm.PresetTesting().Arch, p.Config.Arch, "a named preset is taken at its word")

	// Killed before the first checkpoint: the file in the run's folder.
	first, err := plan("--preset=testing", "--run=runs/young", "--batch-size-is-not-a-flag")
	require.Error(t, err)
	require.Nil(t, first)
	first, err = plan("--preset=testing", "--run=runs/young", "--data=d", "--seed=9")
	require.NoError(t, err)
	require.NoError(t, os.MkdirAll("runs/young", 0o755))
	require.NoError(t, os.WriteFile("runs/young/config.yaml", first.YAML, 0o644))
	p, err = plan("--resume", "--run=runs/young")
	require.NoError(t, err)
	require.Equal(t, first.Config, p.Config)
}
