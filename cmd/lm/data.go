package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"

	"deeploop/internal/checkpoint"
	"deeploop/internal/cli"
	"deeploop/internal/command"
	"deeploop/internal/wording"
	"deeploop/lm/corpus"
	"deeploop/lm/tokens"
)

// sampleData names the embedded sample text where a dataset's path is asked
// for.
const sampleData = "sample"

// openData opens a dataset of lm prepare, foreign shards, or the sample text.
func openData(s *cli.Streams, path string) (*corpus.Dataset, error) {
	if path == sampleData {
		return corpus.Sample(tokens.CharName)
	}
	d, err := corpus.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("open dataset: %w (lm prepare makes one)", err)
	}
	if err != nil {
		return nil, command.Instead(err, "open dataset", path, command.TextData)
	}
	for _, w := range d.Warnings {
		s.Warnf("%s", w)
	}
	return d, nil
}

// checkedBytes is the most that a dataset may have to have its checksums
// compared before it is used: a second's work.
const checkedBytes = 1 << 30

// openUnchanged is openData for figures that depend on every token: the files
// of a dataset must still be those that lm prepare wrote.
func openUnchanged(ctx context.Context, s *cli.Streams, path string) (*corpus.Dataset, error) {
	d, err := openData(s, path)
	if err != nil {
		return nil, err
	}
	progress := command.NewProgress(s)
	progress.Doing("comparing the checksums of dataset " + path)
	checked, err := d.CheckFiles(ctx, checkedBytes)
	progress.End()
	if err != nil {
		if ctx.Err() != nil {
			err = fmt.Errorf("check the dataset: %w", cli.ErrInterrupted)
		}
		return nil, errors.Join(err, d.Close())
	}
	if !checked && d.Format == corpus.FormatDataset {
		s.Infof("note: the checksums of %s are not compared, since it has %s; %s does that",
			path, wording.Bytes(uint64(d.Bytes())), cli.ShellLine(program, "prepare", "--verify", path))
	}
	return d, nil
}

// describeData is a line for the start of a run.
func describeData(d *corpus.Dataset) string {
	return fmt.Sprintf("dataset %s (%s): %d tokens to train on, %d to validate, %s tokenizer of %d ids, hash %.12s",
		d.Path, d.Format, d.Train.Len(), d.Val.Len(), d.Tokenizer.Name(), d.Tokenizer.VocabSize(), d.Hash)
}

// saveTokenizer is a tokenizer as it goes into checkpoints and run folders.
func saveTokenizer(t tokens.Tokenizer) ([]byte, error) {
	var b bytes.Buffer
	if err := tokens.Save(&b, t); err != nil {
		return nil, fmt.Errorf("store the tokenizer: %w", err)
	}
	return b.Bytes(), nil
}

// checkpointTokenizer returns the tokenizer that a checkpoint's model was
// trained with. It needs nothing but the checkpoint.
func checkpointTokenizer(ck *checkpoint.Reader) (tokens.Tokenizer, error) {
	saved := ck.Meta().Tokenizer
	if len(saved) == 0 {
		return nil, cli.Usagef("checkpoint %s has no tokenizer; train with lm train, or import the model again with lm import --tokenizer FILE", ck.Dir())
	}
	t, err := tokens.Load(bytes.NewReader(saved))
	if err != nil {
		return nil, cli.Usagef("checkpoint %s: %w", ck.Dir(), err)
	}
	return t, nil
}
