package main

import (
	"errors"

	"github.com/spf13/pflag"

	"deeploop/internal/cli"
	"deeploop/lm/decode"
	"deeploop/lm/tokens"
)

// modelFlags say which trained model a command uses.
type modelFlags struct {
	run, checkpoint string
}

func (m *modelFlags) add(f *pflag.FlagSet) {
	f.StringVar(&m.run, "run", "", "run folder `DIR` (default the newest below runs/)")
	f.StringVar(&m.checkpoint, "checkpoint", "", "use this checkpoint `FILE` or folder instead of a run's best")
}

// openFunc opens the model that flags name, for one sequence at a time, with
// its tokenizer. close gives its memory back.
type openFunc func(s *cli.Streams, m modelFlags) (d decode.Decoder, t tokens.Tokenizer, close func(), err error)

// openModel is the openFunc of the program.
func openModel(*cli.Streams, modelFlags) (decode.Decoder, tokens.Tokenizer, func(), error) {
	return nil, nil, nil, errors.New("open the model: this version cannot yet")
}
