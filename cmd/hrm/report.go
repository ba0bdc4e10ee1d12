package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"deeploop/internal/cli"
	"deeploop/internal/command"
	"deeploop/internal/files"
	"deeploop/internal/train"
	"deeploop/view"
)

// reportOptions are the flags of hrm report.
type reportOptions struct {
	shownOptions
	runs  []string
	out   string
	force bool
	view.ReportOptions
}

// reportKind recognises what hrm report writes.
var reportKind = files.Kind{Name: "report of hrm report", Is: func(path string) bool {
	f, err := os.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	head, err := io.ReadAll(io.LimitReader(f, 4<<10))
	return err == nil && strings.Contains(string(head), "<title>deeploop</title>")
}}

func newReportCmd(s *cli.Streams) *cobra.Command {
	var o reportOptions
	cmd := &cobra.Command{
		Use:   "report [PATH]...",
		Short: "Write what hrm view shows as one HTML file",
		Long: `Write the page of hrm view with its data as one HTML file, which opens offline
and loads nothing. Paths are those of hrm view.

Lists and curves are whole. Tasks, augmented copies and examples that the model
runs are cut to the numbers below, solved tasks first; the report says so on
its first page.`,
		Example: `  hrm report
  hrm report --run runs/demo --out report.html
  hrm report runs/demo --tasks halo,mirror-sideways`,
		Args: cobra.ArbitraryArgs,
		RunE: func(c *cobra.Command, args []string) error {
			o.kernelGiven = c.Flags().Changed("kernel")
			return reportRun(c.Context(), s, o, args)
		},
	}
	f := cmd.Flags()
	f.SortFlags = false
	f.StringArrayVar(&o.runs, "run", nil, "run folder `DIR`, as a PATH (can be given several times)")
	f.StringVar(&o.out, "out", "report.html", "HTML `FILE` to write")
	f.BoolVar(&o.force, "force", false, "replace a FILE that is no report too")
	f.IntVar(&o.Tasks, "most", 60, "tasks of each list in full")
	f.StringSliceVar(&o.Only, "tasks", nil, "these tasks in full, by `NAME`, and no others")
	f.IntVar(&o.Copies, "copies", 2, "augmented copies of each task of a dataset")
	f.IntVar(&o.Examples, "examples", 6, "examples that the model runs; 0 opens no model")
	o.addFlags(f)
	return cmd
}

func reportRun(ctx context.Context, s *cli.Streams, o reportOptions, paths []string) error {
	ctx, stop := train.OnInterrupt(command.OrBackground(ctx), func(os.Signal) {})
	defer stop()
	for _, f := range []struct {
		name  string
		value int
	}{{"most", o.Tasks}, {"copies", o.Copies}, {"examples", o.Examples}} {
		if f.value < 0 {
			return cli.Usagef("--%s is %d, expected at least 0", f.name, f.value)
		}
	}
	if ext := strings.ToLower(filepath.Ext(o.out)); ext != ".html" && ext != ".htm" {
		return cli.Usagef("write report: %s does not end in .html, expected a name that does", o.out)
	}
	replaces, err := files.Check(o.out, reportKind, o.force, false)
	if err != nil {
		return fmt.Errorf("write report: %w", err)
	}
	found, err := shown(append(append([]string(nil), o.runs...), paths...), o.data)
	if err != nil {
		return err
	}
	progress := command.NewProgress(s)
	progress.Patience = time.Second
	defer progress.End()
	server := view.New(found, viewSources(s, progress, o.shownOptions, ""))
	defer server.Close()
	o.Doing = progress.Doing
	var cuts []string
	size := int64(0)
	err = files.Write(o.out, func(w io.Writer) error {
		counted := &counter{w: w}
		cuts, err = server.Report(ctx, counted, o.ReportOptions)
		size = counted.n
		return err
	})
	progress.End()
	if errors.Is(ctx.Err(), context.Canceled) {
		return fmt.Errorf("write report: %w, nothing was written", cli.ErrInterrupted)
	}
	if err != nil {
		return fmt.Errorf("write report: %w", err)
	}
	did := "wrote"
	if replaces {
		did = "replaced"
	}
	for _, c := range cuts {
		s.Infof("cut: %s", c)
	}
	fmt.Fprintf(s.Out, "%s %s (%.1f MB)\n", did, o.out, float64(size)/1e6)
	return nil
}

// counter counts what is written.
type counter struct {
	w io.Writer
	n int64
}

func (c *counter) Write(b []byte) (int, error) {
	n, err := c.w.Write(b)
	c.n += int64(n)
	return n, err
}
