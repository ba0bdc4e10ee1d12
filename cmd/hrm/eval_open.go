package main

import (
	"os"

	"deeploop/augment"
	"deeploop/hrm"
	"deeploop/internal/checkpoint"
	"deeploop/internal/cli"
)

// evalDataset opens the dataset and checks that the checkpoint belongs to it;
// the architecture takes its sizes.
func evalDataset(s *cli.Streams, o evalOptions, ck *checkpoint.Reader, c *hrm.TrainConfig) (*augment.Dataset, error) {
	dir := o.data
	if dir == "" {
		dir = c.DataPath
		if _, err := os.Stat(dir); err != nil {
			return nil, cli.Usagef("open the dataset of checkpoint %s: %w; give its place with --data DIR", ck.Dir(), err)
		}
	}
	d, err := openDataset(s, dir)
	if err != nil {
		return nil, err
	}
	trained := c.Arch
	c.Arch.SizeFor(d)
	if c.Arch.SeqLen != trained.SeqLen || c.Arch.VocabSize != trained.VocabSize {
		d.Close()
		return nil, cli.Usagef("evaluate checkpoint %s on %s: it was trained on sequences of %d tokens with a vocabulary of %d, the dataset has %d and %d",
			ck.Dir(), dir, trained.SeqLen, trained.VocabSize, c.Arch.SeqLen, c.Arch.VocabSize)
	}
	if id := ck.Meta().Identity; id != nil {
		have, err := hrm.DatasetIdentity(d)
		if err == nil && have != *id {
			err = cli.Usagef("evaluate checkpoint %s on %s: its task embeddings are of %d identifiers, the dataset has %d others; evaluate it on the dataset it was trained on, or train on this one with hrm train --resume --reset-task-embeddings",
				ck.Dir(), dir, id.Count, have.Count)
		}
		if err != nil {
			d.Close()
			return nil, err
		}
	}
	return d, nil
}
