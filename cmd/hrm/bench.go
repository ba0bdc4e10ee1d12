package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"deeploop/hrm"
	"deeploop/internal/cli"
	"deeploop/internal/command"
	"deeploop/internal/kernel"
	"deeploop/internal/runlog"
	"deeploop/internal/train"
)

// benchOptions are the flags of hrm bench.
type benchOptions struct {
	preset           string
	hidden, heads    int
	layers           int
	hCycles, lCycles int
	seqLen, batch    int
	vocab            int
	placement        string
	compute          command.Compute
	steps            int
	seconds          float64
	profile, json    bool
	quiet            bool
	given            func(flag string) bool
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
  hrm bench --kernel avx2 --precision fp32 --threads 1 --json > avx2.json`,
		RunE: func(c *cobra.Command, _ []string) error {
			o.given = c.Flags().Changed
			return benchCmdRun(c.Context(), s, o)
		},
	}
	o.addFlags(cmd.Flags())
	return cmd
}

func (o *benchOptions) addFlags(f *pflag.FlagSet) {
	f.SortFlags = false
	f.StringVar(&o.preset, "preset", hrm.DefaultPreset, "configuration that the flags change: "+strings.Join(hrm.Presets(), ", "))
	for _, x := range benchModelFlags(o) {
		f.IntVar(x.to, x.flag, 0, x.help)
		f.Lookup(x.flag).DefValue = "" // the preset's
	}
	f.StringVar(&o.placement, "placement", "", "postnorm, deepnorm, deeploop or prenorm")
	o.compute.AddFlags(f, "auto")
	f.IntVar(&o.steps, "steps", 10000, "training `N` steps: how long they would take is printed, and no more are timed")
	f.Float64Var(&o.seconds, "seconds", 15, "measure for about so many seconds, at least three steps; two thirds for training")
	f.BoolVar(&o.profile, "profile", false, "where the time goes: every kernel, and what is left for graph and Go")
	f.BoolVar(&o.json, "json", false, "print a JSON document and nothing else")
	f.BoolVar(&o.quiet, "quiet", false, "no progress")
}

// benchModelFlag is a flag that sets keys of the configuration.
type benchModelFlag struct {
	flag, help string
	to         *int
	set        func(c *hrm.TrainConfig, v int)
	keys       []string
}

func benchModelFlags(o *benchOptions) []benchModelFlag {
	return []benchModelFlag{
		{"hidden-size", "width of the states", &o.hidden, func(c *hrm.TrainConfig, v int) { c.Arch.HiddenSize = v }, []string{"arch.hidden_size"}},
		{"num-heads", "attention heads; must divide the hidden size", &o.heads, func(c *hrm.TrainConfig, v int) { c.Arch.NumHeads = v }, []string{"arch.num_heads"}},
		{"layers", "blocks of each module, slow and fast", &o.layers, func(c *hrm.TrainConfig, v int) { c.Arch.HLayers, c.Arch.LLayers = v, v }, []string{"arch.H_layers", "arch.L_layers"}},
		{"H-cycles", "slow cycles per segment", &o.hCycles, func(c *hrm.TrainConfig, v int) { c.Arch.HCycles = v }, []string{"arch.H_cycles"}},
		{"L-cycles", "fast calls per slow cycle", &o.lCycles, func(c *hrm.TrainConfig, v int) { c.Arch.LCycles = v }, []string{"arch.L_cycles"}},
		{"seq-len", "cells of a grid (default 900 for hrm_v1, else 100)", &o.seqLen, func(c *hrm.TrainConfig, v int) { c.Arch.SeqLen = v }, []string{"seq_len"}},
		{"batch-size", "rows per step", &o.batch, func(c *hrm.TrainConfig, v int) { c.GlobalBatchSize = v }, []string{"global_batch_size"}},
		{"vocab-size", "tokens; ARC has 12", &o.vocab, func(c *hrm.TrainConfig, v int) { c.Arch.VocabSize = v }, []string{"vocab_size"}},
	}
}

// config is the preset with what the flags say.
func (o *benchOptions) config() (hrm.TrainConfig, error) {
	base, err := hrm.Preset(o.preset)
	if err != nil {
		return base, err
	}
	c := base
	c.Arch.SeqLen, c.Arch.VocabSize, c.Arch.NumPuzzleIdentifiers = 100, 12, 1000
	if o.preset == "hrm_v1" {
		c.Arch.SeqLen = 900 // ARC's largest canvas
	}
	by := map[string]string{} // flag that set a key
	for _, x := range benchModelFlags(o) {
		if o.given(x.flag) {
			x.set(&c, *x.to)
			for _, k := range x.keys {
				by[k] = "--" + x.flag
			}
		}
	}
	if o.given("placement") {
		c.Arch.Placement = o.placement
		by["arch.placement"] = "--placement"
	}
	c.Follow(base, func(key string) bool { return by[key] != "" })
	err = c.Validate()
	if err == nil {
		err = c.Arch.ValidateSizes()
	}
	var about *hrm.ConfigError
	if errors.As(err, &about) && by[about.Key] != "" {
		err = fmt.Errorf("%w (chosen at %s)", err, by[about.Key])
	}
	return c, err
}

func benchCmdRun(ctx context.Context, s *cli.Streams, o benchOptions) error {
	switch {
	case o.steps < 1:
		return cli.Usagef("--steps is %d, expected at least 1", o.steps)
	case !(o.seconds > 0 && o.seconds <= 1e6):
		return cli.Usagef("--seconds is %v, expected a number above 0", o.seconds)
	}
	c, err := o.config()
	if err != nil {
		return err
	}
	choice, err := o.compute.Open(s, o.given("kernel"))
	if err != nil {
		return err
	}
	defer choice.Backend.Close()
	if err := benchFits(c, choice.Precision); err != nil {
		return err
	}
	ctx, stop := train.OnInterrupt(command.OrBackground(ctx), func(sig os.Signal) {
		fmt.Fprintf(s.Err, "\n%v: ending with what was measured; once more ends at once\n", sig)
	})
	defer stop()
	m := benchMeasure{o: o, c: c, choice: choice, progress: command.NewProgress(s, o.quiet), now: time.Now}
	doc, err := m.run(ctx)
	if err != nil {
		return err
	}
	if o.json {
		err = doc.writeJSON(s.Out)
	} else {
		err = doc.write(s.Out)
	}
	if err == nil && doc.Interrupted {
		err = fmt.Errorf("%w after %d training steps and %d evaluation segments were timed", cli.ErrInterrupted, doc.TrainStep.count(), doc.EvalSegment.count())
	}
	return err
}

// benchFits refuses what the machine's memory does not hold, before anything
// is allocated.
func benchFits(c hrm.TrainConfig, act kernel.DType) error {
	err := c.CheckTraining(act, runlog.PhysicalBytes())
	var memory *hrm.MemoryError
	if errors.As(err, &memory) {
		memory.Advice = "use a smaller --batch-size, --seq-len or --hidden-size, or fewer --layers"
	}
	return err
}
