package command

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"deeploop/internal/checkpoint"
	"deeploop/internal/cli"
)

// inspectOptions are the flags of inspect.
type inspectOptions struct {
	program, kind string
	digest, best  bool
	config        func(w io.Writer, m checkpoint.Meta) error // prints it
}

// NewInspectCmd makes the command inspect of a program, which trains models of
// this kind by configurations T. Checkpoints of other kinds are shown too,
// with the configuration as it is stored.
func NewInspectCmd[T any](s *cli.Streams, program, kind string, schema *cli.Schema[T]) *cobra.Command {
	o := inspectOptions{program: program, kind: kind}
	o.config = func(w io.Writer, m checkpoint.Meta) error { return describeConfig(w, m, kind, schema) }
	cmd := &cobra.Command{
		Use:   "inspect [RUN|CHECKPOINT]",
		Short: "Show what a checkpoint holds",
		Long: `Show the step, the configuration and all tensors of a checkpoint with their
shapes and norms. RUN is a run's folder (its last checkpoint is shown), and
the newest one below runs/ when nothing is named.

--digest prints, as the last line, one SHA-256 over weights, averages,
optimizer, carry, random streams, loader position and step: runs with equal
settings, seed, kernel and thread count have equal digests at equal steps,
wherever they ran and however often they were interrupted.`,
		Example: "  " + program + " inspect\n  " + program + " inspect runs/demo --digest | tail -1",
		Args: func(c *cobra.Command, args []string) error {
			if len(args) > 1 {
				return cli.Usagef("unexpected argument %q; see %s --help", args[1], c.CommandPath())
			}
			return nil
		},
		RunE: func(_ *cobra.Command, args []string) error { return inspectRun(s, o, args) },
	}
	cmd.Flags().BoolVar(&o.digest, "digest", false, "print one hash of the whole state, last")
	cmd.Flags().BoolVar(&o.best, "best", false, "the best checkpoint of the run, not the last")
	return cmd
}

func inspectRun(s *cli.Streams, o inspectOptions, args []string) error {
	path, err := RunOrNewest(o.program, o.kind, args, NewestRun)
	if err != nil {
		return err
	}
	which := checkpoint.LastSaved
	if o.best {
		which = checkpoint.BestSaved
	}
	ck, err := checkpoint.OpenFound(path, which)
	if err != nil {
		return Instead(err, "inspect", path, RunOf(o.kind))
	}
	defer ck.Close()
	progress := NewProgress(s)
	defer progress.End()
	progress.Doing("reading " + ck.Dir())
	var b bytes.Buffer
	if err := describeCheckpoint(&b, ck, o.config); err != nil {
		return err
	}
	if o.digest {
		sum, err := ck.Digest()
		if err != nil {
			return err
		}
		fmt.Fprintln(&b, sum)
	}
	progress.End()
	_, err = s.Out.Write(b.Bytes())
	return err
}

func describeCheckpoint(w io.Writer, ck *checkpoint.Reader, config func(io.Writer, checkpoint.Meta) error) error {
	m := ck.Meta()
	fmt.Fprintf(w, "checkpoint  %s\nstep        %d\nmodel       %s\n", ck.Dir(), ck.Step(), m.Kind)
	if m.Program != "" {
		fmt.Fprintf(w, "written by  %s\n", m.Program)
	}
	if m.Identity != nil {
		fmt.Fprintf(w, "dataset     %d identifiers, sha256 of their names %s\n", m.Identity.Count, m.Identity.SHA256)
	}
	fmt.Fprintln(w, "\nconfiguration")
	if err := config(w, m); err != nil {
		return err
	}
	fmt.Fprintln(w)
	return describeTensors(w, ck)
}

// describeConfig prints the settings as the run's file has them.
func describeConfig[T any](w io.Writer, m checkpoint.Meta, kind string, schema *cli.Schema[T]) error {
	var c T
	if m.Kind == kind && json.Unmarshal(m.Config, &c) == nil {
		return schema.WriteYAML(w, c, "")
	}
	var b bytes.Buffer
	if err := json.Indent(&b, m.Config, "", "  "); err != nil {
		return fmt.Errorf("show the configuration: %w", err)
	}
	_, err := fmt.Fprintln(w, b.String())
	return err
}

// describeTensors prints a line per tensor and a sum per group.
func describeTensors(w io.Writer, ck *checkpoint.Reader) error {
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(tw, "group\ttensor\ttype\tshape\tnorm")
	total, order := map[string]int{}, []string{}
	for _, t := range ck.Tensors() {
		norm, err := tensorNorm(ck, t)
		if err != nil {
			return err
		}
		if _, seen := total[t.Group]; !seen {
			order = append(order, t.Group)
		}
		total[t.Group] += elements(t.Shape)
		fmt.Fprintf(tw, "%s\t%s\t%s\t%v\t%s\n", t.Group, t.Name, t.DType, t.Shape, norm)
	}
	if err := tw.Flush(); err != nil {
		return err
	}
	fmt.Fprintln(w)
	for _, g := range order {
		fmt.Fprintf(w, "%d numbers in %s\n", total[g], g)
	}
	return nil
}

func elements(shape []int) int {
	n := 1
	for _, d := range shape {
		n *= d
	}
	return n
}
