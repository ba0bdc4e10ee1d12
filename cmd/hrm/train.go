package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"deeploop/augment"
	"deeploop/hrm"
	"deeploop/internal/checkpoint"
	"deeploop/internal/cli"
	"deeploop/internal/command"
	"deeploop/internal/kernel"
	"deeploop/internal/runlog"
	"deeploop/internal/train"
	"deeploop/internal/wording"
)

func newTrainCmd(s *cli.Streams) *cobra.Command {
	o := trainOptions{TrainOptions: command.TrainOptions[hrm.TrainConfig]{Settings: newTrainSettings()}}
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
		RunE: func(c *cobra.Command, _ []string) error { return newTraining(&o).Run(c.Context(), s, &o.TrainOptions) },
	}
	o.addFlags(cmd.Flags())
	return cmd
}

// trainOptions are the flags of hrm train.
type trainOptions struct {
	command.TrainOptions[hrm.TrainConfig]
	resetTaskEmbeddings bool
}

func (o *trainOptions) addFlags(fs *pflag.FlagSet) {
	o.TrainOptions.AddFlags(fs, hrm.Presets(), hrm.DefaultPreset)
	fs.BoolVar(&o.resetTaskEmbeddings, "reset-task-embeddings", false, "resume on a dataset with other identifiers or rows: task embeddings, place in the data and best checkpoint start afresh")
	o.Settings.AddFlags(fs)
}

// newTraining is hrm train as package command runs it.
func newTraining(o *trainOptions) *command.Training[hrm.TrainConfig] {
	return &command.Training[hrm.TrainConfig]{
		Program: program, Kind: hrm.Kind, Preset: hrm.Preset, Stored: hrm.CheckpointConfig,
		Keys: func(c *hrm.TrainConfig) command.Keys {
			return command.Keys{DataPath: &c.DataPath, Kernel: &c.Kernel, Precision: &c.Precision, Threads: &c.Threads}
		},
		Adjust: func(c *hrm.TrainConfig, given func(string) bool) {
			if given("epochs") && !given("steps") { // a flag is stronger than a file's steps
				c.Steps = 0
			}
		},
		DataMarker: augment.ManifestName, IsData: isReasonerData, Owned: []string{evalFolder},
		Open: func(ctx context.Context, s *cli.Streams, p *command.Plan[hrm.TrainConfig]) (command.Task, error) {
			return openTask(ctx, s, p, o.resetTaskEmbeddings)
		},
	}
}

// isReasonerData reports whether a folder with a manifest is a dataset of ours:
// those of lm prepare have a tokenizer.
func isReasonerData(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, "tokenizer.json"))
	return err != nil
}

// trainTask is the training of a reasoner on an open dataset.
type trainTask struct {
	s                   *cli.Streams
	config              *hrm.TrainConfig
	data                *augment.Dataset
	resetTaskEmbeddings bool
	job                 *hrm.Job // once built
}

func openTask(ctx context.Context, s *cli.Streams, p *command.Plan[hrm.TrainConfig], reset bool) (*trainTask, error) {
	c := &p.Config
	if c.DataPath == "" {
		var err error
		if c.DataPath, err = buildSamples(ctx, s); err != nil {
			return nil, err
		}
	}
	d, err := openDataset(s, c.DataPath)
	if err != nil {
		return nil, err
	}
	c.Arch.SizeFor(d)
	return &trainTask{s: s, config: c, data: d, resetTaskEmbeddings: reset}, nil
}

func (t *trainTask) Close() error { return t.data.Close() }

// Fits implements command.Task.
func (t *trainTask) Fits(act kernel.DType, memory uint64) error {
	return t.config.CheckTraining(act, memory)
}

// Memory implements command.Task.
func (t *trainTask) Memory(act kernel.DType, free uint64) (need float64, lower string) {
	c := *t.config
	lower = "a smaller --hidden-size or fewer layers take less"
	if batch := c.BatchWithin(act, free); batch > 0 && batch < c.GlobalBatchSize {
		smaller := c
		smaller.GlobalBatchSize = batch
		lower = fmt.Sprintf("--global-batch-size %d takes %s", batch, wording.Bytes(uint64(smaller.TrainingBytes(act))))
	}
	return c.TrainingBytes(act), lower
}

// Build implements command.Task.
func (t *trainTask) Build(backend kernel.Backend, act kernel.DType) (command.Job, error) {
	job, err := hrm.NewJob(*t.config, t.data, backend, act)
	if err != nil {
		return nil, err
	}
	t.job = job
	return job, nil
}

// Describe implements command.Task.
func (t *trainTask) Describe(w io.Writer) {
	fmt.Fprintln(w, describeDataset(t.data))
	describeModel(w, t.job.Model)
	c := t.config
	fmt.Fprintf(w, "a step is one segment of %d rows of %d cells, and training takes at least %s of memory\n",
		c.GlobalBatchSize, c.Arch.SeqLen, wording.Bytes(uint64(c.TrainingBytes(t.job.Model.Act))))
}

// Next implements command.Task.
func (t *trainTask) Next(run string) []string { return []string{"eval", "--run", run} }

// describeModel prints the size of the model and the residual rule in force.
func describeModel(w io.Writer, m *hrm.Model) {
	c := m.Config
	fmt.Fprintf(w, "model: %d trained parameters, hidden %d, %d heads, MLP %d", c.NumParams(), c.HiddenSize, c.NumHeads, c.MLPWidth())
	if c.PuzzleEmbDim > 0 {
		fmt.Fprintf(w, "; %d task embeddings of %d", c.NumPuzzleIdentifiers, c.PuzzleEmbDim)
	}
	fmt.Fprintln(w)
	for _, line := range m.ResidualReport() {
		fmt.Fprintln(w, line)
	}
}

// mayChange are the keys that a resumed run may have otherwise than before.
// Identifiers are compared by name, with a message of their own.
func mayChange(c hrm.TrainConfig) []train.Change {
	changes := command.MayChange(
		train.Change{Key: "checkpoint_every_eval"}, train.Change{Key: "eval_save_outputs"}, // not used
		train.Change{Key: "eval_augmentations", Follows: "evaluations ask other copies of the tasks, so the best checkpoint is chosen anew", Measures: true},
		train.Change{Key: "arch.num_puzzle_identifiers"},
	)
	if c.EvalInterval > 0 { // else epochs is the length of a loader's pass
		changes = append(changes, train.Change{Key: "epochs", Follows: "the rate follows the other schedule from here on"})
	}
	return changes
}

// Loop implements command.Task.
func (t *trainTask) Loop() (command.Loop, error) {
	c, d := *t.config, t.data
	steps := c.TotalSteps(d.Train.TotalGroups, d.Train.MeanPuzzleExamples)
	if steps < 1 {
		return command.Loop{}, cli.Usagef("plan the run: %d epochs of %d groups with %.3g examples each in batches of %d are less than one step; raise --epochs or give --steps",
			c.Epochs, d.Train.TotalGroups, d.Train.MeanPuzzleExamples, c.GlobalBatchSize)
	}
	pass := c // one pass of the loader
	pass.Steps, pass.Epochs = 0, c.EpochsPerPass()
	perPass := pass.TotalSteps(d.Train.TotalGroups, d.Train.MeanPuzzleExamples)
	if perPass < 1 {
		return command.Loop{}, cli.Usagef("plan the run: %d epochs of %d groups with %.3g examples each do not fill a batch of %d rows; use a smaller global_batch_size or a larger eval_interval",
			pass.Epochs, d.Train.TotalGroups, d.Train.MeanPuzzleExamples, c.GlobalBatchSize)
	}
	every := c.EvalSteps
	if every == 0 {
		every = perPass
	}
	if d.Test.Examples() == 0 {
		t.s.Infof("note: the dataset holds no tests out, so nothing is evaluated")
		every = 0
	}
	var meta checkpoint.Meta
	if d.Manifest != nil {
		meta.DatasetHash = d.Manifest.DatasetHash
	}
	if c.Arch.PuzzleEmbDim > 0 {
		id, err := hrm.DatasetIdentity(d)
		if err != nil {
			return command.Loop{}, err
		}
		meta.Identity = &id
	}
	return command.Loop{
		Options: train.Options{
			Steps: steps, EvalEvery: every, SaveEvery: c.CheckpointInterval, Keep: c.Keep,
			BestMetric: hrm.SelectionMetric, Meta: meta, MayChange: mayChange(c), ResetTaskEmbeddings: t.resetTaskEmbeddings,
		},
		Items: progressItems, StepFlops: c.Arch.TrainStepFlops(c.GlobalBatchSize), Smaller: "a smaller --global-batch-size",
	}, nil
}

// progressItems are the metrics of a progress line.
var progressItems = []runlog.Item{
	{Key: "loss", Label: "loss"},
	{Key: "lm_loss", Label: "lm"},
	{Key: "accuracy", Label: "cells", Percent: true},
	{Key: "exact_accuracy", Label: "exact", Percent: true},
	{Key: "steps", Label: "segments"},
}
