package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"deeploop/augment"
	"deeploop/internal/checkpoint"
	"deeploop/internal/cli"
	"deeploop/internal/command"
)

// openDataset opens a dataset folder of ours or of the reference builder,
// which writes no manifest.
func openDataset(s *cli.Streams, dir string) (*augment.Dataset, error) {
	progress := command.NewProgress(s)
	defer progress.End()
	progress.Doing("opening dataset " + dir)
	d, err := openReasonerData(s, dir)
	return d, command.Instead(err, "open dataset", dir, command.ReasonerData)
}

func openReasonerData(s *cli.Streams, dir string) (*augment.Dataset, error) {
	if _, err := os.Stat(dir); errors.Is(err, os.ErrNotExist) {
		return nil, cli.Usagef("open dataset: %w (hrm build-data makes one)", err)
	}
	d, err := augment.OpenDataset(dir)
	if !errors.Is(err, augment.ErrNotDataset) {
		return d, err
	}
	if _, statErr := os.Stat(filepath.Join(dir, augment.ManifestName)); statErr == nil {
		return nil, err
	}
	if _, statErr := os.Stat(filepath.Join(dir, "train", "dataset.json")); statErr != nil {
		return nil, err
	}
	d, err = augment.OpenArrays(dir)
	if err != nil {
		return nil, err
	}
	s.Warnf("%s has no %s, so nothing tells whether it is whole", dir, augment.ManifestName)
	return d, nil
}

// buildSamples makes the dataset of the sample tasks that hrm build-data
// makes when told nothing, and returns its folder.
func buildSamples(ctx context.Context, s *cli.Streams) (string, error) {
	dir := filepath.Join(command.DataFolder, fmt.Sprintf("arc-aug-%d", sampleNumAug))
	s.Infof("no dataset below %s/: building %s of the sample tasks (hrm build-data makes others)", command.DataFolder, dir)
	return dir, buildDataRun(ctx, s.With(s.Lines(), s.Err), buildDataOptions{out: dir, settings: augment.Settings{
		NumAug: sampleNumAug, Seed: 42, MaxGrid: sampleMaxGrid, DestOrder: augment.TrainFirst,
	}})
}

// describeDataset is a line for the start of a run.
func describeDataset(d *augment.Dataset) string {
	text := fmt.Sprintf("dataset %s: %d examples of %d tasks to train on, %d to test, sequences of %d, %d identifiers",
		d.Dir, d.Train.Examples(), d.Train.Groups(), d.Test.Examples(), d.Train.SeqLen, d.NumIdentifiers())
	if d.Manifest != nil {
		text += fmt.Sprintf(", hash %.12s", d.Manifest.DatasetHash)
	}
	return text
}

// warnOtherRows tells when a checkpoint was trained on a dataset with other
// content, which identifiers alone do not show.
func warnOtherRows(s *cli.Streams, ck *checkpoint.Reader, d *augment.Dataset) {
	trained := ck.Meta().DatasetHash
	if d.Manifest == nil || trained == "" || trained == d.Manifest.DatasetHash {
		return
	}
	s.Warnf("checkpoint %s was trained on a dataset with hash %s, %s holds other rows (hash %s)",
		ck.Dir(), trained, d.Dir, d.Manifest.DatasetHash)
}
