package command

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"deeploop/internal/cli"
	"deeploop/internal/curves"
	"deeploop/internal/runlog"
	"deeploop/internal/train"
)

// plotOptions are the flags of plot.
type plotOptions struct {
	program, kind string
	metrics       []string
	smooth        int
	out           string
	force         bool
}

// NewPlotCmd makes the command plot of a program, which trains models of this
// kind. metrics are drawn unless others are named, and example is for the help.
func NewPlotCmd(s *cli.Streams, program, kind string, metrics []string, example string) *cobra.Command {
	o := plotOptions{program: program, kind: kind}
	cmd := &cobra.Command{
		Use:   "plot [RUN]...",
		Short: "Draw the curves of one or several runs",
		Long: `Draw metrics of runs by step into one picture: for every metric its values in
training, smoothed, and its values in evaluations. RUN is a run's folder; the
newest one below runs/ when nothing is named. A name that no run has stands for
all that begin with it and a "_".`,
		Example: example,
		Args:    cobra.ArbitraryArgs,
		RunE:    func(_ *cobra.Command, args []string) error { return plotRun(s, o, args) },
	}
	f := cmd.Flags()
	f.SortFlags = false
	f.StringSliceVar(&o.metrics, "metric", metrics, "metrics of metrics.jsonl to draw")
	f.IntVar(&o.smooth, "smooth", 100, "steps that a training value is averaged over")
	f.StringVar(&o.out, "out", "", "picture `FILE`: .png, .svg or .pdf (default curves.png in the first run's folder)")
	f.BoolVar(&o.force, "force", false, "replace a FILE that is no such picture too")
	return cmd
}

func plotRun(s *cli.Streams, o plotOptions, runs []string) error {
	if len(runs) == 0 {
		run, err := RunOrNewest(o.program, o.kind, nil, NewestTraining)
		if err != nil {
			return err
		}
		runs = []string{run}
	}
	if o.smooth < 1 {
		return cli.Usagef("--smooth is %d, expected at least 1", o.smooth)
	}
	for _, run := range runs { // before a place for the picture is looked for in one
		if _, err := os.Stat(filepath.Join(run, train.MetricsFile)); err != nil {
			return Instead(cli.Usagef("read run %s: %w", run, err), "plot", run, RunOf(o.kind))
		}
	}
	if o.out == "" {
		o.out = filepath.Join(runs[0], "curves.png")
	}
	if err := CheckPicture("curves", o.out, o.force); err != nil {
		return err
	}
	lines := make([][]runlog.Line, len(runs))
	for i, run := range runs {
		var err error
		if lines[i], err = runlog.Read(filepath.Join(run, train.MetricsFile)); err != nil {
			return err
		}
	}
	var panels []curves.Panel
	for _, m := range metricsOf(lines, o.metrics) {
		trained, evaluated := curves.Panel{Title: m + ", training"}, curves.Panel{Title: m + ", evaluation"}
		for i, run := range runs {
			name := filepath.Base(filepath.Clean(run))
			if t := curves.Of(name, lines[i], runlog.Train, m).Smooth(o.smooth); len(t.Steps) > 0 {
				trained.Series = append(trained.Series, t)
			}
			if e := curves.Of(name, lines[i], runlog.Eval, m); len(e.Steps) > 0 {
				evaluated.Series = append(evaluated.Series, e)
			}
		}
		if len(trained.Series) > 0 && !slices.ContainsFunc(evaluated.Series, func(e curves.Series) bool { return len(e.Steps) > 1 }) {
			evaluated.Series = nil // the end alone is no curve
		}
		for _, p := range []curves.Panel{trained, evaluated} {
			if len(p.Series) > 0 {
				panels = append(panels, p)
			}
		}
	}
	if len(panels) == 0 {
		return cli.Usagef("draw curves: none of the runs has a metric called %v; metrics.jsonl lists them", o.metrics)
	}
	if err := curves.Save(o.out, panels); err != nil {
		return err
	}
	fmt.Fprintln(s.Out, o.out)
	return nil
}

// metricsOf replaces names that no run has by those that begin with them.
func metricsOf(runs [][]runlog.Line, names []string) (all []string) {
	known := map[string]bool{}
	for _, lines := range runs {
		for _, l := range lines {
			for k := range l.Values {
				known[k] = true
			}
		}
	}
	for _, n := range names {
		if known[n] {
			all = append(all, n)
			continue
		}
		for _, k := range slices.Sorted(maps.Keys(known)) {
			if strings.HasPrefix(k, n+"_") {
				all = append(all, k)
			}
		}
	}
	return all
}
