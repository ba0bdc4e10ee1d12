package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"deeploop/internal/cli"
	"deeploop/internal/command"
	"deeploop/internal/files"
	"deeploop/internal/train"
	"deeploop/lm/suite"
)

// evalOptions are the flags of lm eval.
type evalOptions struct {
	model       modelFlags
	data, split string
	loops       []int
	tokens      int64
	batch       int
	dump        string
	suites      []string
	shots       []int
	json        bool
	force       bool
}

func newEvalCmd(s *cli.Streams) *cobra.Command {
	var o evalOptions
	cmd := &cobra.Command{
		Use:   "eval",
		Short: "Measure the loss of a trained language model",
		Long: `Measure the loss of a trained language model on a dataset, in nats per token and
bits per byte of text, at one or several loop counts. The text is cut into
windows of the model's context; every token but the first is predicted once.

With --suite the model answers multiple-choice questions too, at the first of
the loop counts, and no others than these are measured unless --data is given
(lm suite has more to choose).

--dump-logits writes the token ids [B, T] and logits [B, T, V] of the first
batch, at the first of the loop counts, for checks in other frameworks.`,
		Example: `  lm eval
  lm eval --run runs/a --data data/books --loops 1,2,4,8
  lm eval --run runs/a --suite sample --shots 0,1 --json`,
		RunE: func(c *cobra.Command, _ []string) error { return evalRun(c.Context(), s, o) },
	}
	f := cmd.Flags()
	f.SortFlags = false
	o.model.addAnyLoops(f)
	f.StringVar(&o.data, "data", "", "dataset `DIR` (default the one the model was trained on)")
	f.StringVar(&o.split, "split", "val", "val or train")
	f.IntSliceVar(&o.loops, "loops", nil, "loop counts, as in 1,2,4 (default that of the training)")
	f.Int64Var(&o.tokens, "tokens", 0, "only so many tokens from the beginning; 0 is all")
	f.IntVar(&o.batch, "batch", 0, "sequences at a time (default the training's batch_size)")
	f.StringArrayVar(&o.suites, "suite", nil, "suite `FILE`, or "+suite.SampleName+"; may be repeated")
	f.IntSliceVar(&o.shots, "shots", []int{0}, "solved examples before each question, as in 0,1")
	f.StringVar(&o.dump, "dump-logits", "", "safetensors `FILE` for ids and logits of the first batch")
	f.BoolVar(&o.force, "force", false, "replace a FILE that is no safetensors file too")
	f.BoolVar(&o.json, "json", false, "print one JSON document")
	return cmd
}

func evalRun(ctx context.Context, s *cli.Streams, o evalOptions) error {
	ctx, stop := train.OnInterrupt(command.OrBackground(ctx), func(os.Signal) {})
	defer stop()
	if err := o.check(); err != nil {
		return err
	}
	e := &evaluation{o: o, s: s, progress: command.NewProgress(s)}
	defer e.progress.End()
	var err error
	if e.suites, err = readSuites(o.suites); err != nil { // all, before any work
		return err
	}
	if e.ck, e.config, err = o.model.openCheckpoint(); err != nil {
		return err
	}
	defer e.ck.Close()
	if err := e.openData(ctx); err != nil {
		return err
	}
	if e.data != nil {
		defer e.data.Close()
	}
	if e.choice, err = o.model.openCompute(s, e.config); err != nil {
		return err
	}
	defer e.choice.Backend.Close()
	err = e.measure(ctx)
	e.progress.End()
	if errors.Is(err, context.Canceled) {
		return fmt.Errorf("evaluate: %w", cli.ErrInterrupted)
	}
	if err != nil {
		return err
	}
	broken := train.CheckWeights(e.ck, e.choice.Backend, e.model.Params())
	if o.json {
		return errors.Join(writeJSON(s.Out, e.report), broken)
	}
	return errors.Join(e.report.print(s.Out), broken)
}

// check refuses flags that mean nothing.
func (o evalOptions) check() error {
	for _, n := range o.loops {
		if n < 1 || n > maxLoops {
			return cli.Usagef("--loops holds %d, expected numbers from 1 to %d", n, maxLoops)
		}
	}
	for _, n := range o.shots {
		if n < 0 {
			return cli.Usagef("--shots holds %d, expected numbers of at least 0", n)
		}
	}
	switch {
	case o.tokens < 0 || o.tokens == 1:
		return cli.Usagef("--tokens is %d, expected at least 2, or 0 for all", o.tokens)
	case o.batch < 0:
		return cli.Usagef("--batch is %d, expected at least 1", o.batch)
	case o.split != "val" && o.split != "train":
		return cli.Usagef("--split is %q, expected val or train", o.split)
	}
	if o.dump == "" {
		return nil
	}
	if _, err := files.Check(o.dump, tensorFile, o.force, false); err != nil {
		return fmt.Errorf("write logits: %w", err)
	}
	return nil
}
