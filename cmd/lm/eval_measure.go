package main

import (
	"context"
	"errors"

	"deeploop/internal/checkpoint"
	"deeploop/internal/cli"
	"deeploop/internal/kernel/pick"
	"deeploop/internal/runlog"
	"deeploop/lm"
	"deeploop/lm/corpus"
	"deeploop/lm/suite"
	"deeploop/lm/tokens"
)

// evaluation is an opened checkpoint with what it is measured on.
type evaluation struct {
	o        evalOptions
	s        *cli.Streams
	progress *runlog.Progress
	ck       *checkpoint.Reader
	config   lm.TrainConfig
	tok      tokens.Tokenizer // nil where only the dataset knows
	data     *corpus.Dataset  // nil without a loss to measure
	split    *corpus.Split
	loops    []int
	suites   [][]suite.Item
	choice   pick.Choice
	model    *lm.Model
	report   evalReport
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
	e.progress.Doing("reading checkpoint " + e.ck.Dir())
	if e.model, r.Weights, err = lm.LoadModel(e.ck, e.config.Arch.AtLoops(e.loops[0]), e.choice.Precision, e.o.model.weights); err != nil {
		return err
	}
	r.Checkpoint, r.Step = e.ck.Dir(), e.ck.Step()
	r.Precision, r.Kernel = e.choice.Precision.String(), e.choice.Backend.Name()
	e.s.Infof("checkpoint %s: step %d, %s weights\n%s", r.Checkpoint, r.Step, r.Weights, e.model.ResidualReport())
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
	e.progress.Doing("evaluating")
	r.Results, err = lm.Validate(ctx, f, e.split, e.o.tokens, e.loops, e.data.Tokenizer.Len, e.progress.Counter("evaluating"))
	e.progress.End()
	return err
}

// askSuites asks all suites at each number of shots, at the first loop count.
func (e *evaluation) askSuites(ctx context.Context) error {
	if len(e.suites) == 0 {
		return nil
	}
	d, err := lm.NewDecoder(e.model, e.choice.Backend)
	if err != nil {
		return err
	}
	defer d.Close()
	for _, shots := range e.o.shots {
		var report suiteReport
		for i, items := range e.suites {
			name := suiteName(e.o.suites[i])
			d.Reset(0)
			one, err := suite.Run(ctx, d, e.tok, items, suite.Options{Name: name, Shots: shots, Seed: 1, Progress: e.progress.Counter(name)})
			e.progress.End()
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
