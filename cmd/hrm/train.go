package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"

	"deeploop/augment"
	"deeploop/hrm"
	"deeploop/internal/checkpoint"
	"deeploop/internal/cli"
	"deeploop/internal/runlog"
	"deeploop/internal/train"
)

func newTrainCmd(s *cli.Streams) *cobra.Command {
	o := trainOptions{settings: newTrainSettings()}
	cmd := &cobra.Command{
		Use:   "train",
		Short: "Train a reasoner",
		Long: `Train a Hierarchical Reasoning Model on a dataset of hrm build-data.

The configuration starts from a preset; a YAML file (--config) and the command
line (--set KEY=VALUE, or the flag of a key) change it, in this order. Without
--data the newest dataset below data/ is used (the sample tasks are built when
there is none), without --run a new folder below runs/.

Ctrl-C saves and says how to continue. A run that exists is only continued
with --resume and only replaced with --force.`,
		Example: `  hrm train
  hrm train --data data/arc-aug-1000 --preset hrm_v1 --run runs/arc1
  hrm train --placement deeploop --steps 20000 --ema
  hrm train --run runs/arc1 --resume --stop-after 500`,
		RunE: func(c *cobra.Command, _ []string) error {
			o.given(c.Flags())
			return trainRun(c.Context(), s, o)
		},
	}
	o.addFlags(cmd.Flags())
	return cmd
}

// trainRun trains until the schedule ends, --stop-after or a signal.
func trainRun(ctx context.Context, s *cli.Streams, o trainOptions) (err error) {
	var training atomic.Pointer[runlog.Progress] // set once there is something to save
	ctx, stop := train.OnInterrupt(orBackground(ctx), func(sig os.Signal) {
		if p := training.Load(); p != nil {
			p.Notef("%v: finishing the step and saving; once more ends at once without saving", sig)
			return
		}
		fmt.Fprintf(s.Err, "%v: stopping before the training begins; once more ends at once\n", sig)
	})
	defer stop()
	p, err := planTrain(o, time.Now())
	if err != nil {
		return err
	}
	c := &p.config
	if c.DataPath == "" {
		if c.DataPath, err = buildSamples(ctx, s); err != nil {
			return err
		}
	}
	d, err := openDataset(s, c.DataPath)
	if err != nil {
		return err
	}
	defer d.Close()
	arithmetic := compute{kernel: c.Kernel, precision: c.Precision, threads: c.Threads}
	if o.resume { // the run stored what auto came to
		const so = "as in the run so far"
		if !p.chosen("kernel") {
			arithmetic.kernelFrom = so
		}
		if !p.chosen("precision") {
			arithmetic.precisionFrom = so
		}
	}
	choice, err := arithmetic.open(s, p.chosen("kernel"))
	if err != nil {
		return err
	}
	defer choice.Backend.Close()
	// What auto came to is part of the run: the same again gives the same bytes.
	c.Kernel, c.Precision, c.Threads = choice.Backend.Name(), choice.Precision.String(), choice.Backend.Threads()
	c.Arch.SizeFor(d)
	if err := p.describe(o); err != nil {
		return err
	}
	options, err := trainLoopOptions(s, o, p, d)
	if err != nil {
		return err
	}

	if err := c.CheckTraining(choice.Precision, runlog.PhysicalBytes()); err != nil {
		return err
	}
	if ctx.Err() != nil {
		return fmt.Errorf("%w before the first step", cli.ErrInterrupted)
	}
	run, err := train.Open(train.Folder{Dir: p.run, How: p.how, Owned: []string{configFile, evalFolder, profileFile}, Now: time.Now})
	if err != nil {
		return err
	}
	defer func() {
		run.Close()
		os.Remove(p.run) // only succeeds on an empty folder, when nothing began
	}()
	prof := newProfiler(o.profile, choice)
	job, err := hrm.NewJob(*c, d, prof.backend(choice), choice.Precision)
	if err != nil {
		return err
	}
	defer job.Close()
	if !o.quiet {
		fmt.Fprintln(s.Err, describeDataset(d))
		describeModel(s, job.Model)
		fmt.Fprintf(s.Err, "run %s: %d steps; this repeats it:\n  %s\n", p.run, options.Steps, p.repeat)
	}
	training.Store(options.Progress)
	recorded := &profiledJob{Job: job, profiler: prof}
	err = run.Train(ctx, options, recorded)
	if err := errors.Join(err, recorded.finish(s, p.run)); err != nil { // a profile of an interrupted training too
		return err
	}
	return trainSummary(s, p.run)
}

// describeModel prints the size of the model and the residual rule in force.
func describeModel(s *cli.Streams, m *hrm.Model) {
	c := m.Config
	fmt.Fprintf(s.Err, "model: %d trained parameters, hidden %d, %d heads, MLP %d", c.NumParams(), c.HiddenSize, c.NumHeads, c.MLPWidth())
	if c.PuzzleEmbDim > 0 {
		fmt.Fprintf(s.Err, "; %d task embeddings of %d", c.NumPuzzleIdentifiers, c.PuzzleEmbDim)
	}
	fmt.Fprintln(s.Err)
	for _, line := range m.ResidualReport() {
		fmt.Fprintln(s.Err, line)
	}
}

// mayChange are the keys that a resumed run may have otherwise than before.
// Identifiers are compared by name, with a message of their own.
func mayChange(c hrm.TrainConfig) []string {
	keys := []string{
		"steps", "data_path", "threads", "kernel", "keep", "checkpoint_interval", "checkpoint_every_eval",
		"eval_steps", "eval_augmentations", "eval_save_outputs", "arch.num_puzzle_identifiers",
	}
	if c.EvalInterval > 0 { // else epochs is the length of a loader's pass
		keys = append(keys, "epochs")
	}
	return keys
}

func trainLoopOptions(s *cli.Streams, o trainOptions, p *trainPlan, d *augment.Dataset) (train.Options, error) {
	c := p.config
	steps := c.TotalSteps(d.Train.TotalGroups, d.Train.MeanPuzzleExamples)
	if steps < 1 {
		return train.Options{}, cli.Usagef("plan the run: %d epochs of %d groups with %.3g examples each in batches of %d are less than one step; raise --epochs or give --steps",
			c.Epochs, d.Train.TotalGroups, d.Train.MeanPuzzleExamples, c.GlobalBatchSize)
	}
	pass := c // one pass of the loader
	pass.Steps, pass.Epochs = 0, c.EpochsPerPass()
	perPass := pass.TotalSteps(d.Train.TotalGroups, d.Train.MeanPuzzleExamples)
	if perPass < 1 {
		return train.Options{}, cli.Usagef("plan the run: %d epochs of %d groups with %.3g examples each do not fill a batch of %d rows; use a smaller global_batch_size or a larger eval_interval",
			pass.Epochs, d.Train.TotalGroups, d.Train.MeanPuzzleExamples, c.GlobalBatchSize)
	}
	every := c.EvalSteps
	if every == 0 {
		every = perPass
	}
	if d.Test.Examples() == 0 {
		fmt.Fprintln(s.Err, "note: the dataset holds no tests out, so nothing is evaluated")
		every = 0
	}
	raw, err := json.Marshal(c)
	if err != nil {
		return train.Options{}, fmt.Errorf("store the configuration: %w", err)
	}
	meta := checkpoint.Meta{Kind: hrm.Kind, Program: "hrm " + cli.Number + " (" + cli.Commit() + ")", Config: raw}
	if d.Manifest != nil {
		meta.DatasetHash = d.Manifest.DatasetHash
	}
	if c.Arch.PuzzleEmbDim > 0 {
		id, err := hrm.DatasetIdentity(d)
		if err != nil {
			return train.Options{}, err
		}
		meta.Identity = &id
	}
	return train.Options{
		Steps: steps, StopAfter: o.stopAfter, MaxTime: time.Duration(o.minutes * float64(time.Minute)), EvalEvery: every, SaveEvery: c.CheckpointInterval, Keep: c.Keep,
		BestMetric: hrm.SelectionMetric, Meta: meta, MayChange: mayChange(c), ResetTaskEmbeddings: o.resetTaskEmbeddings,
		Files: map[string][]byte{configFile: p.yaml}, Continue: p.goOn, Progress: newProgress(s, o.quiet), Now: time.Now,
	}, nil
}

// newProgress shows a run on the error stream.
func newProgress(s *cli.Streams, quiet bool) *runlog.Progress {
	return &runlog.Progress{
		W: s.Err, Terminal: cli.IsTerminal(s.Err), Quiet: quiet, Now: time.Now, Memory: runlog.ResidentBytes,
		Items: []runlog.Item{
			{Key: "loss", Label: "loss"},
			{Key: "lm_loss", Label: "lm"},
			{Key: "accuracy", Label: "cells", Percent: true},
			{Key: "exact_accuracy", Label: "exact", Percent: true},
			{Key: "steps", Label: "segments"},
		},
	}
}

// trainSummary says what the run left, and what comes next.
func trainSummary(s *cli.Streams, run string) error {
	store := checkpoint.Store{Dir: filepath.Join(run, checkpoint.Folder)}
	x, err := store.Index()
	if err != nil {
		return err
	}
	if x.Last != nil {
		fmt.Fprintf(s.Out, "last checkpoint  %s (step %d)\n", store.Path(*x.Last), x.Last.Step)
	}
	if x.Best != nil {
		fmt.Fprintf(s.Out, "best checkpoint  %s (step %d)\n", store.Path(x.Best.Ref), x.Best.Step)
	}
	fmt.Fprintf(s.Out, "next             %s\n", cli.ShellLine("hrm", "eval", "--run", run))
	return nil
}
