package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"deeploop/internal/cli"
	"deeploop/internal/command"
	"deeploop/internal/runlog"
	"deeploop/internal/train"
	"deeploop/lm"
)

func newDiagnoseCmd(s *cli.Streams) *cobra.Command {
	cmd := &cobra.Command{Use: "diagnose", Short: "Measure what goes on inside a model"}
	cmd.AddCommand(newKappaCmd(s))
	return cmd
}

// kappaOptions are the flags of lm diagnose kappa.
type kappaOptions struct {
	model       modelFlags
	data, split string
	batches     int
	batch       int
	group       int
	json, quiet bool
}

func newKappaCmd(s *cli.Streams) *cobra.Command {
	var o kappaOptions
	cmd := &cobra.Command{
		Use:   "kappa",
		Short: "How well the gradients of the loops agree",
		Long: `Measure how well the gradients of a sublayer's visits agree, one for each loop:

  kappa_G = |sum of G_r|^2 / sum of |G_r|^2     0 to R; 1 where they are orthogonal
  cosine  = mean over pairs of loops of the cosine between G_r and G_t

G_r is what loop r contributes to the gradient of the sublayer's matrices, on
batches from the beginning of a split. Figures are means over the batches.

For an untied model (one loop, K*R layers) --group K takes blocks k, K+k,
2K+k... as the visits of one sublayer, for comparison with a looped one.`,
		Example: `  lm diagnose kappa --run runs/a
  lm diagnose kappa --run runs/untied --group 2 --json`,
		RunE: func(c *cobra.Command, _ []string) error { return kappaRun(c.Context(), s, o) },
	}
	f := cmd.Flags()
	f.SortFlags = false
	o.model.addAnyLoops(f)
	f.StringVar(&o.data, "data", "", "dataset `DIR` (default the one the model was trained on)")
	f.StringVar(&o.split, "split", "val", "val or train")
	f.IntVar(&o.batches, "batches", 4, "batches to average over")
	f.IntVar(&o.batch, "batch", 0, "sequences of a batch (default the training's batch_size)")
	f.IntVar(&o.group, "group", 0, "blocks that count as stored ones in an untied model")
	f.BoolVar(&o.json, "json", false, "print one JSON document")
	f.BoolVar(&o.quiet, "quiet", false, "no progress")
	return cmd
}

// kappaReport is what lm diagnose kappa --json prints.
type kappaReport struct {
	Checkpoint   string          `json:"checkpoint"`
	Step         int             `json:"step"`
	Weights      string          `json:"weights"`
	Data         string          `json:"data"`
	Split        string          `json:"split"`
	Batches      int             `json:"batches"`
	Tokens       int             `json:"tokens"` // of a batch
	Visits       int             `json:"visits"` // of each sublayer
	KappaGMax    runlog.Number   `json:"kappa_g_max"`
	KappaGMedian runlog.Number   `json:"kappa_g_median"`
	CosineMean   *runlog.Number  `json:"cosine_mean"` // null with one visit
	Sublayers    []sublayerKappa `json:"sublayers"`
}

// sublayerKappa is lm.Agreement in JSON.
type sublayerKappa struct {
	Sublayer string          `json:"sublayer"`
	KappaG   runlog.Number   `json:"kappa_g"`
	Cosine   *runlog.Number  `json:"cosine"` // null with one visit
	Norms    []runlog.Number `json:"norms"`
}

func kappaRun(ctx context.Context, s *cli.Streams, o kappaOptions) error {
	ctx, stop := train.OnInterrupt(command.OrBackground(ctx), func(os.Signal) {})
	defer stop()
	if o.batches < 1 || o.batch < 0 || o.group < 0 {
		return cli.Usagef("--batches, --batch and --group are numbers of at least 1")
	}
	ck, c, err := o.model.openCheckpoint()
	if err != nil {
		return err
	}
	defer ck.Close()
	trained, err := tokenizerOf(ck)
	if err != nil {
		return err
	}
	d, err := openText(s, o.data, ck.Dir(), c, trained)
	if err != nil {
		return err
	}
	defer d.Close()
	split, err := splitOf(d, o.split)
	if err != nil {
		return err
	}
	if o.batch == 0 {
		o.batch = c.BatchSize
	}
	tokens := o.batch * c.Arch.Context
	if have := (split.Len() - 1) / int64(tokens); have < int64(o.batches) {
		return cli.Usagef("the %s split of %s has %d tokens, enough for %d batches of %d sequences of %d tokens, not %d; use a smaller --batches or --batch",
			o.split, d.Path, split.Len(), have, o.batch, c.Arch.Context, o.batches)
	}
	choice, err := o.model.openCompute(s, c)
	if err != nil {
		return err
	}
	defer choice.Backend.Close()
	m, weights, err := lm.LoadModel(ck, c.Arch, choice.Precision, o.model.weights)
	if err != nil {
		return err
	}
	k, err := lm.NewKappa(m, choice.Backend, o.batch, c.Arch.Context)
	if err != nil {
		return err
	}
	defer k.Close()
	if o.group > 0 {
		if err := k.Group(o.group); err != nil {
			return err
		}
	}
	progress := command.NewProgress(s, o.quiet)
	count := progress.Counter("measuring")
	var all []lm.Agreements
	for i := range o.batches {
		if ctx.Err() != nil {
			return fmt.Errorf("measure kappa: %w", cli.ErrInterrupted)
		}
		if err := k.Load(split, int64(i)*int64(tokens)); err != nil {
			return err
		}
		as, err := k.Measure()
		if err != nil {
			return err
		}
		all = append(all, as)
		count(i+1, o.batches)
	}
	progress.End()
	r := kappaReport{Checkpoint: ck.Dir(), Step: ck.Step(), Weights: weights, Data: d.Path, Split: o.split, Batches: o.batches, Tokens: tokens}
	r.fill(lm.MeanOf(all))
	if o.json {
		return writeJSON(s.Out, r)
	}
	fmt.Fprintf(s.Err, "checkpoint %s: step %d, %s weights\n%s\n", r.Checkpoint, r.Step, r.Weights, m.ResidualReport())
	return r.print(s.Out)
}

func (r *kappaReport) fill(as lm.Agreements) {
	r.Visits = len(as[0].Norms)
	cosine := func(v float64) *runlog.Number {
		if r.Visits == 1 {
			return nil
		}
		n := runlog.Number(v)
		return &n
	}
	r.KappaGMax, r.KappaGMedian = runlog.Number(as.Max()), runlog.Number(as.Median())
	r.CosineMean = cosine(as.MeanCosine())
	for _, a := range as {
		r.Sublayers = append(r.Sublayers, sublayerKappa{a.Sublayer, runlog.Number(a.KappaG), cosine(a.Cosine), runlog.Numbers(a.Norms)})
	}
}

func (r *kappaReport) print(w io.Writer) error {
	text := func(v *runlog.Number) string {
		if v == nil {
			return "-"
		}
		return fmt.Sprintf("%.4f", *v)
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "sublayer\tkappa_G\tcosine\tgradient norm of each visit")
	for _, a := range r.Sublayers {
		var norms []string
		for _, n := range a.Norms {
			norms = append(norms, fmt.Sprintf("%.3g", n))
		}
		fmt.Fprintf(t, "%s\t%.4f\t%s\t%s\n", a.Sublayer, a.KappaG, text(a.Cosine), strings.Join(norms, " "))
	}
	if err := t.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintf(w, "kappa_G: max %.4f, median %.4f of %d visits; mean cosine %s\n", r.KappaGMax, r.KappaGMedian, r.Visits, text(r.CosineMean))
	return err
}
