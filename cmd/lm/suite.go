package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"deeploop/internal/cli"
	"deeploop/internal/command"
	"deeploop/internal/train"
	"deeploop/lm/suite"
)

// suiteOptions are the flags of lm suite.
type suiteOptions struct {
	model     modelFlags
	suites    []string
	shots     int
	shotsFrom string
	seed      uint64
	limit     int
	json      bool
}

func newSuiteCmd(s *cli.Streams, open openFunc) *cobra.Command {
	var o suiteOptions
	cmd := &cobra.Command{
		Use:   "suite",
		Short: "Measure a language model with multiple-choice questions",
		Long: `Ask a trained language model multiple-choice questions: the choice whose
tokens have the highest summed log-probability after the context is its answer.

Accuracy is the share of right answers; "per character" divides each sum by the
choice's length first. Both come with their standard error, and chance is what
guessing would reach. With several suites the last line is their mean.

A suite is a file of JSON lines:
  {"context": "The sky is", "choices": ["blue", "loud"], "gold": 0}
"` + suite.SampleName + `" is a small one that comes with the program; lm suite convert makes
suites of public benchmarks.`,
		Example: `  lm suite
  lm suite --suite arc_easy.jsonl --suite piqa.jsonl --shots 1 --shots-from train.jsonl`,
		RunE: func(c *cobra.Command, _ []string) error { return suiteRun(c.Context(), s, open, o) },
	}
	f := cmd.Flags()
	f.SortFlags = false
	o.model.add(f)
	f.StringArrayVar(&o.suites, "suite", []string{suite.SampleName}, "suite `FILE`, or "+suite.SampleName+"; may be repeated")
	f.IntVar(&o.shots, "shots", 0, "solved examples before each question")
	f.StringVar(&o.shotsFrom, "shots-from", "", "suite `FILE` of the examples (default the suite's other questions)")
	f.Uint64Var(&o.seed, "seed", 1, "of the draw of examples")
	f.IntVar(&o.limit, "limit", 0, "only this many questions of each suite; 0 is all")
	f.BoolVar(&o.json, "json", false, "print one JSON document")
	cmd.AddCommand(newSuiteConvertCmd(s))
	return cmd
}

// suiteReport is what lm suite --json prints.
type suiteReport struct {
	Results          []suite.Result `json:"results"`
	MeanAccuracy     float64        `json:"mean_accuracy"` // unweighted
	MeanAccuracyNorm float64        `json:"mean_accuracy_norm"`
}

func suiteRun(ctx context.Context, s *cli.Streams, open openFunc, o suiteOptions) error {
	if o.shots < 0 {
		return cli.Usagef("--shots is %d, expected at least 0", o.shots)
	}
	if o.limit < 0 {
		return cli.Usagef("--limit is %d, expected at least 0", o.limit)
	}
	var pool []suite.Item
	var err error
	if o.shotsFrom != "" {
		if pool, err = readSuite(o.shotsFrom); err != nil {
			return err
		}
	}
	all := make([][]suite.Item, len(o.suites))
	for i, path := range o.suites { // all, before any work
		if all[i], err = readSuite(path); err != nil {
			return err
		}
		if o.limit > 0 && o.limit < len(all[i]) {
			all[i] = all[i][:o.limit]
		}
	}
	d, tok, closeModel, err := open(s, o.model)
	if err != nil {
		return err
	}
	defer closeModel()
	ctx, stop := train.OnInterrupt(command.OrBackground(ctx), func(os.Signal) {})
	defer stop()
	progress := command.NewProgress(s)
	defer progress.End()
	var report suiteReport
	for i, items := range all {
		name := suiteName(o.suites[i])
		r, err := suite.Run(ctx, d, tok, items, suite.Options{Name: name, Shots: o.shots, Pool: pool, Seed: o.seed, Progress: progress.Counter(name)})
		progress.End()
		if errors.Is(err, context.Canceled) {
			return fmt.Errorf("measure %s: %w", name, cli.ErrInterrupted)
		}
		if err != nil {
			return err
		}
		report.add(s, r)
	}
	report.MeanAccuracy /= float64(len(all))
	report.MeanAccuracyNorm /= float64(len(all))
	if o.json {
		return writeJSON(s.Out, report)
	}
	return report.table(s.Out)
}

// add takes the result of one suite, and says where examples ran out.
func (r *suiteReport) add(s *cli.Streams, one suite.Result) {
	if one.Shots < one.ShotsAsked {
		s.Warnf("%s: %d shots asked for, there are %d examples: %d used", one.Suite, one.ShotsAsked, one.Shots, one.Shots)
	}
	r.Results = append(r.Results, one)
	r.MeanAccuracy += one.Accuracy
	r.MeanAccuracyNorm += one.AccuracyNorm
}

// table prints a line per suite, in percent.
func (r *suiteReport) table(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "suite\tquestions\tshots\taccuracy %\tper character %\tchance %\tcut contexts")
	for _, one := range r.Results {
		fmt.Fprintf(t, "%s\t%d\t%d\t%s\t%s\t%.1f\t%d\n", one.Suite, one.N, one.Shots,
			withError(one.Accuracy, one.StdErr), withError(one.AccuracyNorm, one.StdErrNorm), 100*one.Chance, one.ContextsCut)
	}
	if len(r.Results) > 1 {
		fmt.Fprintf(t, "mean\t\t\t%s\t%s\t\t\n", withError(r.MeanAccuracy, nil), withError(r.MeanAccuracyNorm, nil))
	}
	return t.Flush()
}

func withError(share float64, stdErr *float64) string {
	if stdErr == nil {
		return fmt.Sprintf("%.2f", 100*share)
	}
	return fmt.Sprintf("%.2f +- %.2f", 100*share, 100**stdErr)
}

func suiteName(path string) string {
	return strings.TrimSuffix(filepath.Base(path), filepath.Ext(path))
}

// readSuite reads a file, or the sample.
func readSuite(path string) ([]suite.Item, error) {
	if path == suite.SampleName {
		return suite.Sample(), nil
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, cli.Usagef("read suite: %w", err)
	}
	defer f.Close()
	if info, err := f.Stat(); err == nil && info.IsDir() {
		return nil, cli.Usagef("read suite: %s is a folder, expected a file", path)
	}
	return suite.Read(f, path)
}
