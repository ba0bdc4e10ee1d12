package main

import (
	"bytes"
	"context"
	"errors"

	"github.com/spf13/pflag"

	"deeploop/internal/checkpoint"
	"deeploop/internal/cli"
	"deeploop/internal/command"
	"deeploop/internal/kernel/pick"
	"deeploop/internal/train"
	"deeploop/lm"
	"deeploop/lm/corpus"
	"deeploop/lm/decode"
	"deeploop/lm/tokens"
)

// modelFlags say which trained model a command uses, and how it computes.
type modelFlags struct {
	command.Trained
	weights string
	loops   int
	compute command.Compute
	flags   *pflag.FlagSet // that these were added to
}

// add registers the flags of a command that runs a model at one loop count.
func (m *modelFlags) add(f *pflag.FlagSet) {
	m.addAnyLoops(f)
	f.IntVar(&m.loops, "loops", 0, "how often the stored blocks run (default as in the training)")
}

// addAnyLoops is add for a command with loop counts of its own.
func (m *modelFlags) addAnyLoops(f *pflag.FlagSet) {
	m.addCheckpoint(f)
	m.compute.AddFlags(f, "as in the training")
}

// addCheckpoint registers those that name weights.
func (m *modelFlags) addCheckpoint(f *pflag.FlagSet) {
	m.flags = f
	m.AddFlags(f, "use")
	f.StringVar(&m.weights, "weights", "", "ema or raw (default ema where the run kept it)")
}

// openCheckpoint opens the checkpoint that the flags choose.
func (m *modelFlags) openCheckpoint() (*checkpoint.Reader, lm.TrainConfig, error) {
	return command.OpenTrained[lm.TrainConfig](m.Trained, program, lm.Kind)
}

// openCompute chooses the kernel, as in the training where nothing else is
// asked for.
func (m *modelFlags) openCompute(s *cli.Streams, c lm.TrainConfig) (pick.Choice, error) {
	compute := m.compute
	if compute.Precision == "" {
		compute.Precision, compute.PrecisionFrom = c.Precision, "as in the training"
	}
	return compute.Open(s, m.flags.Changed("kernel"))
}

// openModel is the openFunc of the program.
func openModel(s *cli.Streams, m modelFlags) (decode.Decoder, tokens.Tokenizer, func(), error) {
	ck, c, err := m.openCheckpoint()
	if err != nil {
		return nil, nil, nil, err
	}
	defer ck.Close()
	tok, err := checkpointTokenizer(ck)
	if err != nil {
		return nil, nil, nil, err
	}
	if m.loops != 0 {
		if m.loops < 1 || m.loops > maxLoops {
			return nil, nil, nil, cli.Usagef("--loops is %d, expected 1 to %d", m.loops, maxLoops)
		}
		c.Arch = c.Arch.AtLoops(m.loops)
	}
	choice, err := m.openCompute(s, c)
	if err != nil {
		return nil, nil, nil, err
	}
	progress := command.NewProgress(s)
	defer progress.End()
	progress.Doing("reading checkpoint " + ck.Dir())
	model, weights, err := lm.LoadModel(ck, c.Arch, choice.Precision, m.weights)
	if err != nil {
		choice.Backend.Close()
		return nil, nil, nil, err
	}
	if err := train.CheckWeights(ck, choice.Backend, model.Params()); err != nil {
		choice.Backend.Close()
		return nil, nil, nil, err
	}
	d, err := lm.NewDecoder(model, choice.Backend)
	if err != nil {
		choice.Backend.Close()
		return nil, nil, nil, err
	}
	progress.End()
	s.Infof("checkpoint %s: step %d, %s weights\n%s", ck.Dir(), ck.Step(), weights, model.ResidualReport())
	return d, tok, func() { d.Close(); choice.Backend.Close() }, nil
}

// maxLoops bounds the loop counts of commands.
const maxLoops = 1 << 10

// openFunc opens the model that flags name, for one sequence at a time, with
// its tokenizer. close gives its memory back.
type openFunc func(s *cli.Streams, m modelFlags) (d decode.Decoder, t tokens.Tokenizer, close func(), err error)

// tokenizerOf returns the tokenizer that a checkpoint holds; nil where it holds
// none (an imported model).
func tokenizerOf(ck *checkpoint.Reader) (tokens.Tokenizer, error) {
	if len(ck.Meta().Tokenizer) == 0 {
		return nil, nil
	}
	return checkpointTokenizer(ck)
}

// openText opens a dataset for a trained model ("": the one it was trained
// on), and refuses one of another tokenizer. of is for messages.
func openText(ctx context.Context, s *cli.Streams, path, of string, c lm.TrainConfig, trained tokens.Tokenizer) (*corpus.Dataset, error) {
	if path == "" {
		path = c.DataPath
	}
	if path == "" {
		return nil, cli.Usagef("checkpoint %s does not say which dataset it was trained on; name one with --data DIR", of)
	}
	d, err := openUnchanged(ctx, s, path)
	if err != nil {
		return nil, err
	}
	have := c.Arch
	have.Vocabulary(d.Tokenizer.VocabSize())
	switch {
	case have.VocabSize != c.Arch.VocabSize:
		err = cli.Usagef("dataset %s has tokenizer %s with %d ids, checkpoint %s was trained on a vocabulary of %d; prepare the text with the tokenizer of the training",
			path, d.Tokenizer.Name(), d.Tokenizer.VocabSize(), of, c.Arch.VocabSize)
	case trained != nil && !sameTokenizer(d.Tokenizer, trained):
		err = cli.Usagef("dataset %s has tokenizer %s with %d ids, checkpoint %s was trained with another: %s with %d ids; prepare the text with that one",
			path, d.Tokenizer.Name(), d.Tokenizer.VocabSize(), of, trained.Name(), trained.VocabSize())
	}
	if err != nil {
		return nil, errors.Join(err, d.Close())
	}
	return d, nil
}

// sameTokenizer compares all ids.
func sameTokenizer(a, b tokens.Tokenizer) bool {
	var x, y bytes.Buffer
	return tokens.Save(&x, a) == nil && tokens.Save(&y, b) == nil && bytes.Equal(x.Bytes(), y.Bytes())
}

// splitOf returns a split by its name.
func splitOf(d *corpus.Dataset, name string) (*corpus.Split, error) {
	switch name {
	case "val":
		return d.Val, nil
	case "train":
		return d.Train, nil
	}
	return nil, cli.Usagef("--split is %q, expected val or train", name)
}
