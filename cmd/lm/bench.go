package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"deeploop/internal/cli"
	"deeploop/internal/command"
	"deeploop/internal/kernel"
	"deeploop/lm"
)

// benchOptions are the flags of lm bench.
type benchOptions struct {
	command.BenchOptions
	keys *command.KeyFlags[lm.TrainConfig]
}

func newBenchCmd(s *cli.Streams) *cobra.Command {
	var o benchOptions
	cmd := &cobra.Command{
		Use:   "bench",
		Short: "Time training and evaluation of a configuration on this machine",
		Long: `Time training steps and evaluation batches of a configuration on random tokens,
and say how long a number of steps would take here.

A training step is all of it, on one batch (grad_accum 1): forward, backward,
clipping and AdamW. An evaluation batch is one of a validation, with the loss.
Each is timed by itself after a warm-up, for --seconds together; printed are
minimum, median and maximum. Reading a dataset is not in it.

GFLOP/s count the operations of matrix products and attention that run. The
ceiling is what the kernel's own multiply instructions give from registers,
probed before and after each measurement. Operations per token are those of a
forward pass as the literature counts them, attention's masked half included.`,
		Example: `  lm bench
  lm bench --preset gpt2-small --context 64 --batch-size 4
  lm bench --hidden-size 256 --num-heads 4 --layers 4 --loops 4 --context 256 --batch-size 16 --profile
  lm bench --loops 16 --checkpoint-loops --precision bf16 --json > bench.json`,
		RunE: func(c *cobra.Command, _ []string) error { return benchRun(c.Context(), s, o) },
	}
	o.addFlags(cmd.Flags())
	return cmd
}

func (o *benchOptions) addFlags(f *pflag.FlagSet) {
	f.SortFlags = false
	type config = lm.TrainConfig
	f.StringVar(&o.Preset, "preset", lm.DefaultPreset, "configuration that the flags change: "+strings.Join(lm.Presets(), ", "))
	o.keys = command.NewKeyFlags(f, []command.KeyFlag[config]{
		{Flag: "layers", Help: "stored blocks", Whole: func(c *config, v int) { c.Arch.Layers = v }, Keys: []string{"arch.layers"}},
		{Flag: "loops", Help: "how often they run", Whole: func(c *config, v int) { c.Arch.Loops = v }, Keys: []string{"arch.loops"}},
		{Flag: "hidden-size", Help: "width of the states", Whole: func(c *config, v int) { c.Arch.HiddenSize = v }, Keys: []string{"arch.hidden_size"}},
		{Flag: "num-heads", Help: "attention heads; must divide the hidden size", Whole: func(c *config, v int) { c.Arch.NumHeads = v }, Keys: []string{"arch.num_heads"}},
		{Flag: "context", Help: "tokens of a sequence", Whole: func(c *config, v int) { c.Arch.Context = v }, Keys: []string{"arch.context"}},
		{Flag: "batch-size", Help: "sequences of a step", Whole: func(c *config, v int) { c.BatchSize = v }, Keys: []string{"batch_size"}},
		{Flag: "vocab-size", Help: "tokens, rounded up to the preset's multiple (default GPT-2's for gpt2-small and gpt2-medium, else bytes)", Whole: func(c *config, v int) { c.Arch.Vocabulary(v) }, Keys: []string{"vocab_size"}},
		{Flag: "placement", Help: "deeploop, deepnorm, prenorm or postnorm", Word: func(c *config, v string) { c.Arch.Placement = v }, Keys: []string{"arch.placement"}},
		{Flag: "mlp", Help: "swiglu, gelu, gelu_erf or relu2", Word: func(c *config, v string) { c.Arch.MLP = v }, Keys: []string{"arch.mlp"}},
		{Flag: "checkpoint-loops", Help: "keep only the states between loops for the backward pass", On: func(c *config, v bool) { c.CheckpointLoops = v }, Keys: []string{"checkpoint_loops"}},
	})
	o.BenchOptions.AddFlags(f)
}

// Vocabularies that are timed unless told otherwise.
const (
	byteVocabulary = 257
	gpt2Vocabulary = 50257
)

// config is the preset with what the flags say.
func (o *benchOptions) config() (lm.TrainConfig, error) {
	base, err := lm.Preset(o.Preset)
	if err != nil {
		return base, err
	}
	c := base
	c.GradAccum = 1
	c.Arch.Vocabulary(byteVocabulary)
	if strings.HasPrefix(o.Preset, "gpt2-") {
		c.Arch.Vocabulary(gpt2Vocabulary)
	}
	o.keys.Apply(&c, o.Given)
	c.Follow(base, o.keys.Chosen)
	err = c.Validate()
	if v := c.Arch.VocabSize; err == nil && (v < 1 || v > 1<<24) {
		err = &lm.ConfigError{Key: "vocab_size", Found: v, Want: "a whole number from 1 to 16777216"}
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
		Options: o.BenchOptions, Evaluation: "evaluation batch", Tokens: float64(c.TokensPerStep()),
		Says: fmt.Sprintf("model of %d trained parameters, batches of %d sequences of %d tokens", c.Arch.NumParams(), c.BatchSize, c.Arch.Context),
		Fits: c.CheckTraining, Advice: "use a smaller --batch-size, --context or --hidden-size, fewer --layers or --loops, or --checkpoint-loops",
		Open: func(backend kernel.Backend, act kernel.DType) (command.Benched, error) {
			b, err := lm.NewBench(c, backend, act, time.Now)
			if err != nil {
				return command.Benched{}, err
			}
			return command.Benched{TrainStep: b.TrainStep, Evaluate: b.EvalBatch, Recorder: b.Recorder, Close: b.Close}, nil
		},
		Document: func(f *command.Figures) (any, string) {
			doc := newBenchDoc(c, o.Preset, f)
			return doc, doc.text()
		},
	}
	return m.Run(ctx, s)
}
