package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"deeploop/internal/checkpoint"
	"deeploop/internal/cli"
	"deeploop/internal/command"
	"deeploop/internal/files"
	"deeploop/internal/kernel/pick"
	"deeploop/internal/runlog"
	"deeploop/internal/train"
	"deeploop/lm"
	"deeploop/lm/corpus"
	"deeploop/lm/suite"
	"deeploop/lm/tokens"
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
	json, quiet bool
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

With --suite the model answers multiple-choice questions too, and no others
than these are measured unless --data is given (lm suite has more to choose).

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
	f.BoolVar(&o.quiet, "quiet", false, "no progress")
	return cmd
}

// evalReport is what lm eval --json prints.
type evalReport struct {
	Checkpoint string          `json:"checkpoint"`
	Step       int             `json:"step"`
	Weights    string          `json:"weights"`
	Precision  string          `json:"precision"`
	Kernel     string          `json:"kernel"`
	Data       string          `json:"data,omitempty"`
	DataHash   string          `json:"data_hash,omitempty"`
	Split      string          `json:"split,omitempty"`
	Results    []lm.Validation `json:"results,omitempty"`
	Suites     []suiteReport   `json:"suites,omitempty"` // one for each of --shots
}

// evaluation is an opened checkpoint with what it is measured on.
type evaluation struct {
	o      evalOptions
	s      *cli.Streams
	ck     *checkpoint.Reader
	config lm.TrainConfig
	tok    tokens.Tokenizer // nil where only the dataset knows
	data   *corpus.Dataset  // nil without a loss to measure
	split  *corpus.Split
	loops  []int
	suites [][]suite.Item
	choice pick.Choice
	model  *lm.Model
	report evalReport
}

func evalRun(ctx context.Context, s *cli.Streams, o evalOptions) error {
	ctx, stop := train.OnInterrupt(command.OrBackground(ctx), func(os.Signal) {})
	defer stop()
	if err := o.check(); err != nil {
		return err
	}
	e := &evaluation{o: o, s: s}
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

func readSuites(paths []string) ([][]suite.Item, error) {
	all := make([][]suite.Item, len(paths))
	for i, path := range paths {
		var err error
		if all[i], err = readSuite(path); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// openData opens the dataset where there is a loss to measure, else only the
// tokenizer.
func (e *evaluation) openData(ctx context.Context) error {
	o := e.o
	e.loops = o.loops
	if len(e.loops) == 0 {
		e.loops = []int{e.config.Arch.Loops}
	}
	var err error
	if len(o.suites) > 0 && o.data == "" && o.dump == "" {
		e.tok, err = checkpointTokenizer(e.ck)
		return err
	}
	if e.tok, err = tokenizerOf(e.ck); err != nil {
		return err
	}
	if e.data, err = openText(ctx, e.s, o.data, e.ck.Dir(), e.config, e.tok); err != nil {
		return err
	}
	e.tok = e.data.Tokenizer
	if e.split, err = splitOf(e.data, o.split); err == nil && e.split.Len() < 2 {
		err = cli.Usagef("the %s split of %s has %d tokens, at least 2 are needed to predict one", o.split, e.data.Path, e.split.Len())
	}
	if err != nil {
		return errors.Join(err, e.data.Close())
	}
	return nil
}

// measure loads the model and measures what was asked for.
func (e *evaluation) measure(ctx context.Context) error {
	batch := e.o.batch
	if batch == 0 {
		batch = e.config.BatchSize
	}
	if e.split != nil { // no more windows than there are
		n := e.split.Len() - 1
		if e.o.tokens > 0 {
			n = min(n, e.o.tokens-1)
		}
		batch = int(max(1, min(int64(batch), n/int64(e.config.Arch.Context))))
	}
	if err := e.config.Arch.CheckEvaluation(e.choice.Precision, batch, runlog.PhysicalBytes()); err != nil {
		return err
	}
	var err error
	r := &e.report
	if e.model, r.Weights, err = lm.LoadModel(e.ck, e.config.Arch, e.choice.Precision, e.o.model.weights); err != nil {
		return err
	}
	r.Checkpoint, r.Step = e.ck.Dir(), e.ck.Step()
	r.Precision, r.Kernel = e.choice.Precision.String(), e.choice.Backend.Name()
	if !e.o.quiet {
		fmt.Fprintf(e.s.Err, "checkpoint %s: step %d, %s weights\n%s\n", r.Checkpoint, r.Step, r.Weights, e.model.ResidualReport())
	}
	if e.data != nil {
		if err := e.losses(ctx, batch); err != nil {
			return err
		}
	}
	return e.askSuites(ctx)
}

// losses measures the split, and dumps the first batch where asked to.
func (e *evaluation) losses(ctx context.Context, batch int) error {
	r := &e.report
	r.Data, r.DataHash, r.Split = e.data.Path, e.data.Hash, e.o.split
	f, err := lm.NewValidation(e.model, e.choice.Backend, batch)
	if err != nil {
		return err
	}
	defer f.Close()
	if e.o.dump != "" {
		if err := e.dumpLogits(f); err != nil {
			return err
		}
	}
	progress := command.NewProgress(e.s, e.o.quiet)
	defer progress.End()
	r.Results, err = lm.Validate(ctx, f, e.split, e.o.tokens, e.loops, e.data.Tokenizer.Len, progress.Counter("evaluating"))
	return err
}

// askSuites asks all suites at each number of shots, at the loop count of the
// training.
func (e *evaluation) askSuites(ctx context.Context) error {
	if len(e.suites) == 0 {
		return nil
	}
	d, err := lm.NewDecoder(e.model, e.choice.Backend)
	if err != nil {
		return err
	}
	defer d.Close()
	progress := command.NewProgress(e.s, e.o.quiet)
	for _, shots := range e.o.shots {
		var report suiteReport
		for i, items := range e.suites {
			name := suiteName(e.o.suites[i])
			d.Reset(0)
			one, err := suite.Run(ctx, d, e.tok, items, suite.Options{Name: name, Shots: shots, Seed: 1, Progress: progress.Counter(name)})
			progress.End()
			if err != nil {
				return err
			}
			report.add(e.s, one)
		}
		report.MeanAccuracy /= float64(len(e.suites))
		report.MeanAccuracyNorm /= float64(len(e.suites))
		e.report.Suites = append(e.report.Suites, report)
	}
	return nil
}

// print writes tables.
func (r *evalReport) print(w io.Writer) error {
	if len(r.Results) > 0 {
		fmt.Fprintf(w, "%s split of %s\n", r.Split, r.Data)
		t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
		fmt.Fprintln(t, "loops\tnats per token\tbits per byte\ttokens right %\ttokens")
		for _, v := range r.Results {
			fmt.Fprintf(t, "%d\t%.4f\t%.4f\t%.2f\t%d\n", v.Loops, v.Loss, v.BitsPerByte, 100*v.Accuracy, v.Tokens)
		}
		if err := t.Flush(); err != nil {
			return err
		}
	}
	for i := range r.Suites {
		if err := r.Suites[i].table(w); err != nil {
			return err
		}
	}
	return nil
}
