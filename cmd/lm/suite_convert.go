package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"deeploop/internal/cli"
	"deeploop/internal/files"
	"deeploop/internal/wording"
	"deeploop/lm/suite"
)

// suiteConvertOptions are the flags of lm suite convert.
type suiteConvertOptions struct {
	task, input, labels, out string
	force                    bool
}

// suiteFile recognises what the command writes.
var suiteFile = files.Kind{Name: "suite", Is: func(path string) bool {
	f, err := os.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	head, _ := io.ReadAll(io.LimitReader(f, 64<<10)) // what cannot be read is of no kind
	return bytes.HasPrefix(bytes.TrimSpace(head), []byte("{")) && bytes.Contains(head, []byte(`"choices"`)) && bytes.Contains(head, []byte(`"gold"`))
}}

func newSuiteConvertCmd(s *cli.Streams) *cobra.Command {
	var o suiteConvertOptions
	var tasks strings.Builder
	for _, t := range suite.Tasks {
		fmt.Fprintf(&tasks, "  %s\n    row:     %s\n    context: %s\n", t.Name, t.Layout, t.Prompt)
	}
	cmd := &cobra.Command{
		Use:   "convert",
		Short: "Make a suite of a public benchmark's file",
		Long: `Convert a published file of a benchmark (JSON lines, one JSON list or parquet)
to a suite. Contexts are those of lm-evaluation-harness. Convert a split that has
answers; those of many test splits are not published.

Tasks:
` + tasks.String(),
		Example: `  lm suite convert --task hellaswag --input hellaswag_val.jsonl --out hellaswag.jsonl
  lm suite convert --task piqa --input valid.jsonl --labels valid-labels.lst --out piqa.jsonl`,
		RunE: func(*cobra.Command, []string) error { return suiteConvertRun(s, o) },
	}
	f := cmd.Flags()
	f.SortFlags = false
	f.StringVar(&o.task, "task", "", "`NAME` of the benchmark: "+strings.Join(suite.TaskNames(), ", "))
	f.StringVar(&o.input, "input", "", "published `FILE`")
	f.StringVar(&o.labels, "labels", "", "`FILE` of answers, one a line, for tasks that have them apart")
	f.StringVar(&o.out, "out", "", "suite `FILE` to write")
	f.BoolVar(&o.force, "force", false, "replace a FILE that is no suite too")
	return cmd
}

func suiteConvertRun(s *cli.Streams, o suiteConvertOptions) error {
	for _, f := range []struct{ name, value string }{{"task", o.task}, {"input", o.input}, {"out", o.out}} {
		if f.value == "" {
			return cli.Usagef("--%s is missing; see lm suite convert --help", f.name)
		}
	}
	task, found := suite.FindTask(o.task)
	if !found {
		if near := wording.Nearest(o.task, suite.TaskNames()); near != "" {
			return cli.Usagef("--task is %q; did you mean %s?", o.task, near)
		}
		return cli.Usagef("--task is %q, expected one of %s", o.task, strings.Join(suite.TaskNames(), ", "))
	}
	if o.labels != "" && !task.Labels {
		return cli.Usagef("--labels: the answers of %s are in its rows", task.Name)
	}
	replaces, err := files.Check(o.out, suiteFile, o.force, false)
	if err != nil {
		return fmt.Errorf("write suite: %w", err)
	}
	items, err := convertFile(task, o)
	if err != nil {
		return err
	}
	if err := files.Write(o.out, func(w io.Writer) error { return suite.Write(w, items) }); err != nil {
		return fmt.Errorf("write suite %s: %w", o.out, err)
	}
	did := "wrote"
	if replaces {
		did = "replaced"
	}
	_, err = fmt.Fprintf(s.Out, "%s %s: %s of %s\n", did, o.out, wording.Count(len(items), "question"), task.Name)
	return err
}

// convertFile reads a published file and its labels.
func convertFile(task suite.Task, o suiteConvertOptions) ([]suite.Item, error) {
	var labels []string
	if o.labels != "" {
		f, err := os.Open(o.labels)
		if err != nil {
			return nil, cli.Usagef("read labels: %w", err)
		}
		defer f.Close()
		if labels, err = suite.ReadLabels(f, o.labels); err != nil {
			return nil, err
		}
	}
	f, err := os.Open(o.input)
	if err != nil {
		return nil, cli.Usagef("read %s: %w", task.Name, err)
	}
	defer f.Close()
	return task.Convert(f, o.input, labels)
}
