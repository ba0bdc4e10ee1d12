package main

import (
	"context"
	"fmt"
	"io"

	"deeploop/internal/checkpoint"
	"deeploop/internal/cli"
	"deeploop/internal/command"
	"deeploop/internal/kernel"
	"deeploop/internal/runlog"
	"deeploop/internal/train"
	"deeploop/internal/wording"
	"deeploop/lm"
	"deeploop/lm/corpus"
)

// trainTask is the training of a language model on an open dataset.
type trainTask struct {
	s      *cli.Streams
	config *lm.TrainConfig
	data   *corpus.Dataset
	model  *lm.Model // once built
}

// openTask opens the data that the plan names, and takes the vocabulary from
// it.
func openTask(ctx context.Context, s *cli.Streams, p *command.Plan[lm.TrainConfig]) (*trainTask, error) {
	c := &p.Config
	if c.DataPath == "" {
		s.Infof("no dataset below %s/: training on the embedded sample text (lm prepare makes datasets)", command.DataFolder)
		c.DataPath = sampleData
	}
	d, err := openUnchanged(ctx, s, c.DataPath)
	if err != nil {
		return nil, err
	}
	t := &trainTask{s: s, config: c, data: d}
	if err := t.check(); err != nil {
		d.Close()
		return nil, err
	}
	if n := c.Arch.Layers * c.Arch.Loops; n >= manyBlocks && !c.CheckpointLoops {
		s.Infof("note: a step of %d blocks takes minutes to prepare; --checkpoint-loops prepares one loop only", n)
	}
	return t, nil
}

// manyBlocks are so many in a step that its graph takes long to build: the time
// grows with the square of their number.
const manyBlocks = 400

// check refuses data that the configuration cannot train on.
func (t *trainTask) check() error {
	c, d := t.config, t.data
	trained := c.Arch.VocabSize // of the run so far, 0 of a new one
	c.Arch.Vocabulary(d.Tokenizer.VocabSize())
	if trained != 0 && trained != c.Arch.VocabSize {
		return cli.Usagef("train on %s: the run's model has a vocabulary of %d, the dataset's %s tokenizer needs %d; name the dataset it was trained on with --data, or start another run with --run",
			d.Path, trained, d.Tokenizer.Name(), c.Arch.VocabSize)
	}
	if n := d.Train.Len(); n < int64(c.Arch.Context)+1 {
		return cli.Usagef("train on %s: its training split has %d tokens, a sequence of arch.context %d and what follows it need %d; use a smaller --context, or more text",
			d.Path, n, c.Arch.Context, c.Arch.Context+1)
	}
	if n, need := d.Val.Len(), int64(c.BatchSize)*int64(c.Arch.Context)+1; c.KappaSteps > 0 && n < need {
		return cli.Usagef("train on %s: kappa_steps needs a batch of validation tokens, %d, the dataset has %d; use a smaller --batch-size or --context, or --kappa-steps 0",
			d.Path, need, n)
	}
	return nil
}

// Loop implements command.Task.
func (t *trainTask) Loop() (command.Loop, error) {
	c, d := *t.config, t.data
	every := c.EvalSteps
	if every == 0 {
		every = c.Steps
	}
	if d.Val.Len() < 2 {
		t.s.Infof("note: the dataset has no validation split, so nothing is evaluated")
		every = 0
	}
	tok, err := saveTokenizer(d.Tokenizer)
	if err != nil {
		return command.Loop{}, err
	}
	items, err := progressItems(c)
	if err != nil {
		return command.Loop{}, err
	}
	return command.Loop{
		Options: train.Options{
			Steps: c.Steps, EvalEvery: every, SaveEvery: c.CheckpointInterval, Keep: c.Keep,
			BestMetric: lm.SelectionMetric, BestIsLow: true,
			Meta: checkpoint.Meta{DatasetHash: d.Hash, Tokenizer: tok}, MayChange: mayChange(), SameDataOnly: true,
			Files: map[string][]byte{corpus.TokenizerName: tok},
		},
		Items: items, FlopsPerToken: c.TrainStepFlops() / float64(c.TokensPerStep()), StepFlops: c.TrainStepFlops(),
		Smaller: "a smaller batch or context",
	}, nil
}

// mayChange are the keys that a resumed run may have otherwise than before.
func mayChange() []train.Change {
	const kappa = "kappa is measured at other steps or of other blocks from here on"
	return command.MayChange(
		train.Change{Key: "checkpoint_loops"}, // the same bits
		train.Change{Key: "eval_tokens", Follows: "evaluations read another part of the validation split, so the best checkpoint is chosen anew", Measures: true},
		train.Change{Key: "eval_loops", Follows: "evaluations are at other loop counts from here on"},
		train.Change{Key: "kappa_steps", Follows: kappa},
		train.Change{Key: "kappa_group", Follows: kappa},
	)
}

// progressItems are the metrics of a progress line and of an evaluation's.
func progressItems(c lm.TrainConfig) ([]runlog.Item, error) {
	items := []runlog.Item{
		{Key: "loss", Label: "loss"},
		{Key: "grad_norm", Label: "grad"},
		{Key: "kappa_G_max", Label: "kappa"},
		{Key: "bits_per_byte", Label: "bits/byte"},
		{Key: "accuracy", Label: "right", Percent: true},
	}
	counts, err := c.LoopCounts()
	if err != nil {
		return nil, err
	}
	for _, r := range counts[1:] {
		items = append(items, runlog.Item{Key: fmt.Sprintf("loss_r%d", r), Label: fmt.Sprintf("at R=%d", r)})
	}
	return items, nil
}

// Fits implements command.Task.
func (t *trainTask) Fits(act kernel.DType, memory uint64) error {
	return t.config.CheckTraining(act, memory)
}

// Memory implements command.Task.
func (t *trainTask) Memory(act kernel.DType, free uint64) (need float64, lower string) {
	c := *t.config
	lower = "a smaller --hidden-size, --context or --layers takes less"
	if batch := c.BatchWithin(act, free); batch > 0 && batch < c.BatchSize {
		smaller := c
		smaller.BatchSize = batch
		lower = fmt.Sprintf("--batch-size %d --grad-accum %d takes %s", batch, c.GradAccum*((c.BatchSize+batch-1)/batch), wording.Bytes(uint64(smaller.TrainingBytes(act))))
	}
	if c.Arch.Loops > 1 && !c.CheckpointLoops {
		lower += ", --checkpoint-loops less too"
	}
	return c.TrainingBytes(act), lower
}

// Build implements command.Task.
func (t *trainTask) Build(backend kernel.Backend, act kernel.DType) (command.Job, error) {
	job, err := lm.NewJob(*t.config, lm.Data{Train: t.data.Train, Val: t.data.Val, Length: t.data.Tokenizer.Len}, backend, act)
	if err != nil {
		return nil, err
	}
	t.model = job.Model
	return job, nil
}

// Describe implements command.Task.
func (t *trainTask) Describe(w io.Writer) {
	fmt.Fprintln(w, describeData(t.data))
	describeModel(w, t.model)
	c := t.config
	fmt.Fprintf(w, "a step reads %d tokens (%d sequences of %d), %.3g epochs in %s, and takes at least %s of memory; forward pass %s\n",
		c.TokensPerStep(), c.BatchSize*c.GradAccum, c.Arch.Context,
		float64(c.TokensPerStep())*float64(c.Steps)/float64(t.data.Train.Len()), wording.Count(c.Steps, "step"),
		wording.Bytes(uint64(c.TrainingBytes(t.model.Act))), flopsText(c.Arch.FlopsPerToken()))
}

// Next implements command.Task.
func (t *trainTask) Next(run string) []string { return []string{"generate", "--run", run} }

// Close implements command.Task.
func (t *trainTask) Close() error { return t.data.Close() }

// describeModel prints the size of the model and the residual rule in force.
func describeModel(w io.Writer, m *lm.Model) {
	c := m.Config
	qk := ""
	if c.QKNorm {
		qk = ", QK-norm"
	}
	fmt.Fprintf(w, "model: %d trained parameters, hidden %d, %d heads%s, MLP %d (%s), context %d, vocabulary %d\n%s\n",
		c.NumParams(), c.HiddenSize, c.NumHeads, qk, c.Width(), c.MLP, c.Context, c.VocabSize, m.ResidualReport())
}

// flopsText tells the operations of a forward pass for one token.
func flopsText(f lm.Flops) string {
	return fmt.Sprintf("%s per token: blocks %s, attention %s, head %s", flops(f.Total()), flops(f.Blocks), flops(f.Attention), flops(f.Head))
}

// flops writes a number of operations with three digits.
func flops(v float64) string {
	for _, u := range []struct {
		size float64
		unit string
	}{{1e12, "TFLOP"}, {1e9, "GFLOP"}, {1e6, "MFLOP"}} {
		if v >= u.size {
			return fmt.Sprintf("%.3g %s", v/u.size, u.unit)
		}
	}
	return fmt.Sprintf("%.3g kFLOP", v/1e3)
}
