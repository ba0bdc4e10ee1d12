package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"

	"deeploop/hrm"
	"deeploop/internal/checkpoint"
	"deeploop/internal/cli"
	"deeploop/internal/command"
	"deeploop/internal/runlog"
	"deeploop/internal/train"
)

// watchEvery is how often a run is looked at.
var watchEvery = 2 * time.Second

// watchAlone refuses flags that mean nothing together.
func watchAlone(given func(flag string) bool) error {
	if given("watch") {
		for _, name := range []string{"predictions", "answers", "truth", "submission", "curve", "per-task", "json", "data"} {
			if given(name) {
				return cli.Usagef("--watch and --%s: choose one; hrm eval and hrm score do the rest for a single checkpoint", name)
			}
		}
		return nil
	}
	for _, name := range []string{"augmentations", "threads"} {
		if given(name) {
			return cli.Usagef("--%s goes with --watch; hrm eval has it too", name)
		}
	}
	return nil
}

// watchRun scores a run's checkpoints as they come, until nobody trains it.
func watchRun(ctx context.Context, s *cli.Streams, o scoreOptions) error {
	if err := o.checkLadder(); err != nil {
		return err
	}
	ctx, stop := train.OnInterrupt(command.OrBackground(ctx), func(os.Signal) {})
	defer stop()
	if _, err := os.Stat(o.watch); err != nil {
		return cli.Usagef("watch run: %w", err)
	}
	progress := command.NewProgress(s, progressItems...)
	defer progress.End()
	said, waiting := s.Err, false // what evaluations say is said once
	for last := -1; ; {
		training := checkpoint.InUse(o.watch) // before looking, so that its last save is seen
		dir, step, err := lastCheckpoint(o.watch)
		switch {
		case err != nil && !training:
			return command.Instead(err, "watch run", o.watch, command.ReasonerRun)
		case err == nil && step > last:
			progress.Doing("opening checkpoint " + dir)
			scored, err := o.scoreCheckpoint(ctx, s.With(io.Discard, said), progress, dir)
			if _, gone := os.Stat(dir); err != nil && errors.Is(gone, fs.ErrNotExist) && ctx.Err() == nil {
				continue // the training has replaced it meanwhile
			}
			if err != nil {
				return err
			}
			progress.Clear()
			fmt.Fprintf(s.Out, "step %-8d %s\n", step, scored)
			last, said, waiting = step, io.Discard, false
			continue
		case !training:
			return nil
		case !waiting:
			s.Infof("waiting for the next checkpoint of %s", o.watch)
			progress.Doing("waiting")
			waiting = true
		}
		select {
		case <-ctx.Done():
			return cli.ErrInterrupted
		case <-time.After(watchEvery):
		}
	}
}

// lastCheckpoint returns the newest checkpoint of a run.
func lastCheckpoint(run string) (dir string, step int, err error) {
	ck, err := checkpoint.OpenFound(run, checkpoint.LastSaved)
	if err != nil {
		return "", 0, err
	}
	defer ck.Close()
	if kind := ck.Meta().Kind; kind != hrm.Kind {
		return "", 0, cli.Usagef("watch run %s: it trains a model of kind %q, expected %q", run, kind, hrm.Kind)
	}
	return ck.Dir(), ck.Step(), nil
}

// scoreCheckpoint evaluates a checkpoint and scores its predictions.
func (o scoreOptions) scoreCheckpoint(ctx context.Context, s *cli.Streams, progress *runlog.Progress, dir string) (string, error) {
	e := evalOptions{Trained: command.Trained{Checkpoint: dir}, augmentations: o.augmentations, progress: progress, compute: command.Compute{Kernel: "auto", Threads: o.threads}}
	path, err := evaluate(ctx, s, e)
	if err != nil {
		return "", err
	}
	o.predictions = path
	r, err := scorePredictions(s, progress, o)
	if err != nil {
		return "", err
	}
	rungs := r.Ladder
	if !slices.ContainsFunc(rungs, func(l scoreReport) bool { return l.K == o.votes }) {
		rungs = append([]scoreReport{r.Headline}, rungs...)
	}
	var parts []string
	for _, rung := range rungs {
		parts = append(parts, fmt.Sprintf("pass@%d %s", rung.K, rung.AllTests.text("%.0f/%d")))
	}
	return strings.Join(parts, "   "), nil
}
