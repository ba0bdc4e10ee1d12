package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"deeploop/hrm"
	"deeploop/internal/cli"
	"deeploop/internal/command"
	"deeploop/internal/kernel"
)

// benchOptions are the flags of hrm bench.
type benchOptions struct {
	command.BenchOptions
	keys *command.KeyFlags[hrm.TrainConfig]
}

func newBenchCmd(s *cli.Streams) *cobra.Command {
	var o benchOptions
	cmd := &cobra.Command{
		Use:   "bench",
		Short: "Time training and evaluation of a configuration on this machine",
		Long: `Time training steps and evaluation segments of a configuration on random data,
and say how long a number of steps would take here.

A training step is all of it: the segment without and with gradient, the target
of q, the backward pass and both optimizers. An evaluation segment is one of the
segments of hrm eval, with the heads. Each is timed by itself after a warm-up,
for --seconds together; printed are minimum, median and maximum. Reading a
dataset is not in it.

GFLOP/s count the operations of matrix products and attention that run. The
ceiling is what the kernel's own multiply instructions give from registers,
probed before and after each measurement.`,
		Example: `  hrm bench
  hrm bench --preset hrm_v1 --batch-size 1 --steps 100000
  hrm bench --hidden-size 256 --num-heads 4 --layers 4 --seq-len 100 --batch-size 32 --profile
  hrm bench --precision fp32 --threads 1 --json > bench.json`,
		RunE: func(c *cobra.Command, _ []string) error { return benchRun(c.Context(), s, o) },
	}
	o.addFlags(cmd.Flags())
	return cmd
}

func (o *benchOptions) addFlags(f *pflag.FlagSet) {
	f.SortFlags = false
	f.StringVar(&o.Preset, "preset", hrm.DefaultPreset, "configuration that the flags change: "+strings.Join(hrm.Presets(), ", "))
	o.keys = command.NewKeyFlags(f, []command.KeyFlag[hrm.TrainConfig]{
		{Flag: "hidden-size", Help: "width of the states", Whole: func(c *hrm.TrainConfig, v int) { c.Arch.HiddenSize = v }, Keys: []string{"arch.hidden_size"}},
		{Flag: "num-heads", Help: "attention heads; must divide the hidden size", Whole: func(c *hrm.TrainConfig, v int) { c.Arch.NumHeads = v }, Keys: []string{"arch.num_heads"}},
		{Flag: "layers", Help: "blocks of each module, slow and fast", Whole: setLayers, Keys: []string{"arch.H_layers", "arch.L_layers"}},
		{Flag: "H-cycles", Help: "slow cycles per segment", Whole: func(c *hrm.TrainConfig, v int) { c.Arch.HCycles = v }, Keys: []string{"arch.H_cycles"}},
		{Flag: "L-cycles", Help: "fast calls per slow cycle", Whole: func(c *hrm.TrainConfig, v int) { c.Arch.LCycles = v }, Keys: []string{"arch.L_cycles"}},
		{Flag: "seq-len", Help: "cells of a grid (default 900 for hrm_v1 and trm, else 100)", Whole: func(c *hrm.TrainConfig, v int) { c.Arch.SeqLen = v }, Keys: []string{"seq_len"}},
		{Flag: "batch-size", Help: "rows per step", Whole: func(c *hrm.TrainConfig, v int) { c.GlobalBatchSize = v }, Keys: []string{"global_batch_size"}},
		{Flag: "vocab-size", Help: "tokens; ARC has 12", Whole: func(c *hrm.TrainConfig, v int) { c.Arch.VocabSize = v }, Keys: []string{"vocab_size"}},
		{Flag: "placement", Help: "postnorm, deepnorm, deeploop or prenorm", Word: func(c *hrm.TrainConfig, v string) { c.Arch.Placement = v }, Keys: []string{"arch.placement"}},
	})
	o.BenchOptions.AddFlags(f)
}

// setLayers sets the blocks of each module that a model has.
func setLayers(c *hrm.TrainConfig, v int) {
	c.Arch.LLayers = v
	if !c.Arch.OneNetwork() {
		c.Arch.HLayers = v
	}
}

// config is the preset with what the flags say.
func (o *benchOptions) config() (hrm.TrainConfig, error) {
	base, err := hrm.Preset(o.Preset)
	if err != nil {
		return base, err
	}
	c := base
	c.Arch.SeqLen, c.Arch.VocabSize, c.Arch.NumPuzzleIdentifiers = 100, 12, 1000
	if o.Preset == hrm.NameHRM || o.Preset == hrm.NameTRM {
		c.Arch.SeqLen = 900 // ARC's largest canvas
	}
	o.keys.Apply(&c, o.Given)
	c.Follow(base, o.keys.Chosen)
	err = c.Validate()
	if err == nil {
		err = c.Arch.ValidateSizes()
	}
	return c, o.keys.Explain(err)
}

func benchRun(ctx context.Context, s *cli.Streams, o benchOptions) error {
	if err := o.Check(); err != nil {
		return err
	}
	c, err := o.config()
	if err != nil {
		return err
	}
	m := command.Bench{
		Options: o.BenchOptions, Evaluation: "evaluation segment", Tokens: float64(c.GlobalBatchSize * c.Arch.SeqLen),
		Says: fmt.Sprintf("model of %d trained parameters, batches of %d rows", c.Arch.NumParams(), c.GlobalBatchSize),
		Fits: c.CheckTraining, Advice: "use a smaller --batch-size, --seq-len or --hidden-size, or fewer --layers",
		Open: func(backend kernel.Backend, act kernel.DType) (command.Benched, error) {
			b, err := hrm.NewBench(c, backend, act, time.Now)
			if err != nil {
				return command.Benched{}, err
			}
			return command.Benched{TrainStep: b.TrainStep, Evaluate: b.EvalSegment, Recorder: b.Recorder, Close: b.Close}, nil
		},
		Document: func(f *command.Figures) (any, string) {
			doc := newBenchDoc(c, o.Preset, f)
			return doc, doc.Config.String()
		},
	}
	return m.Run(ctx, s)
}
