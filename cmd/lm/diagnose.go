package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"deeploop/internal/cli"
	"deeploop/internal/command"
	"deeploop/internal/kernel"
	"deeploop/internal/kernel/pick"
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
	full        bool
	iterations  int
	json        bool
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

--full measures kappa itself, of which kappa_G is the gradients' half:

  kappa = |sum of U_r| |sum of G_r| / (R max|U_r| max|G_r|)     0 to R; 1 for R = 1

U_r is the derivative of the final hidden states (of all tokens of the batch, as
the head reads them) with respect to the matrices that loop r sees; |U_r| is its
largest singular value, found by power iterations that start along the gradient.

Units: kappa, kappa_G and cosine have none. |G_r| is nats per token for a change
of the matrices by 1 in Frobenius norm, |U_r| the Euclidean change of all hidden
states of the batch for the same.

--full computes in fp32 and takes some 6*iterations*K*(R+2) forward passes of a batch. One batch of a few
sequences is enough to compare models (--batches 1 --batch 4).

For an untied model (one loop, K*R layers) --group K takes blocks k, K+k,
2K+k... as the visits of one sublayer, for comparison with a looped one.

While training, lm train --kappa-steps N writes kappa_G_max, kappa_G_median and
kappa_cosine_mean (over sublayers) to metrics.jsonl before step 1, N+1, 2N+1...
and at the end, with --kappa-group K for an untied model; lm plot --metric kappa_G
draws them.`,
		Example: `  lm diagnose kappa --run runs/a
  lm diagnose kappa --run runs/a --full --batches 1 --batch 4
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
	f.BoolVar(&o.full, "full", false, "measure kappa itself too, with the sensitivities of the final states")
	f.IntVar(&o.iterations, "iterations", lm.DefaultIterations, "power iterations of --full; 0 takes the sensitivities along the gradients")
	f.BoolVar(&o.json, "json", false, "print one JSON document")
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
	Full         *fullReport     `json:"full,omitempty"`
	Sublayers    []sublayerKappa `json:"sublayers"`
}

// sublayerKappa is lm.Agreement in JSON.
type sublayerKappa struct {
	Sublayer string          `json:"sublayer"`
	KappaG   runlog.Number   `json:"kappa_g"`
	Cosine   *runlog.Number  `json:"cosine"` // null with one visit
	Norms    []runlog.Number `json:"norms"`
	Full     *sublayerFull   `json:"full,omitempty"`
}

// fullReport and sublayerFull are what --full adds.
type fullReport struct {
	Iterations  int           `json:"iterations"`
	KappaMax    runlog.Number `json:"kappa_max"`
	KappaMedian runlog.Number `json:"kappa_median"`
}

// sublayerFull is lm.Full in JSON.
type sublayerFull struct {
	Kappa          runlog.Number   `json:"kappa"`
	Sensitivities  []runlog.Number `json:"sensitivities"`
	SumSensitivity runlog.Number   `json:"sum_sensitivity"`
	SumNorm        runlog.Number   `json:"sum_norm"`
}

func kappaRun(ctx context.Context, s *cli.Streams, o kappaOptions) error {
	ctx, stop := train.OnInterrupt(command.OrBackground(ctx), func(os.Signal) {})
	defer stop()
	if o.batches < 1 || o.batch < 0 || o.group < 0 {
		return cli.Usagef("--batches, --batch and --group are numbers of at least 1")
	}
	if o.iterations < 0 || o.iterations > 1000 {
		return cli.Usagef("--iterations is %d, expected 0 to 1000", o.iterations)
	}
	if o.full {
		switch o.model.compute.Precision {
		case "", pick.Auto:
			o.model.compute.Precision, o.model.compute.PrecisionFrom = "fp32", "--full needs it"
		case "bf16":
			return cli.Usagef("--full needs --precision fp32: differences of bf16 states are mostly rounding")
		}
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
	d, err := openText(ctx, s, o.data, ck.Dir(), c, trained)
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
	k, err := o.meter(m, choice.Backend, c)
	if err != nil {
		return err
	}
	defer k.Close()
	progress := command.NewProgress(s)
	defer progress.End()
	progress.Doing("measuring the first batch")
	count := progress.Counter("measuring")
	var all []lm.Agreements
	for i := range o.batches {
		if err := k.Load(split, int64(i)*int64(tokens)); err != nil {
			return err
		}
		as, err := k.Measure(ctx, func(done, total int) { count(i*total+done, o.batches*total) })
		if ctx.Err() != nil {
			return fmt.Errorf("measure kappa: %w", cli.ErrInterrupted)
		}
		if err != nil {
			return err
		}
		all = append(all, as)
	}
	progress.End()
	r := kappaReport{Checkpoint: ck.Dir(), Step: ck.Step(), Weights: weights, Data: d.Path, Split: o.split, Batches: o.batches, Tokens: tokens}
	r.fill(lm.MeanOf(all), o)
	broken := train.CheckWeights(ck, choice.Backend, m.Params())
	if o.json {
		return errors.Join(writeJSON(s.Out, r), broken)
	}
	s.Infof("checkpoint %s: step %d, %s weights\n%s", r.Checkpoint, r.Step, r.Weights, m.ResidualReport())
	return errors.Join(r.print(s.Out), broken)
}

// meter measures kappa of a model, batch by batch.
type meter interface {
	Load(data lm.Tokens, at int64) error
	Measure(ctx context.Context, progress func(done, total int)) (lm.Agreements, error)
	Close()
}

func (o kappaOptions) meter(m *lm.Model, backend kernel.Backend, c lm.TrainConfig) (meter, error) {
	if o.full {
		return lm.NewFullKappa(m, backend, o.batch, c.Arch.Context, o.group, o.iterations)
	}
	return lm.NewKappa(m, backend, o.batch, c.Arch.Context, o.group)
}

func (r *kappaReport) fill(as lm.Agreements, o kappaOptions) {
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
	if o.full {
		r.Full = &fullReport{o.iterations, runlog.Number(as.FullMax()), runlog.Number(as.FullMedian())}
	}
	for _, a := range as {
		s := sublayerKappa{Sublayer: a.Sublayer, KappaG: runlog.Number(a.KappaG), Cosine: cosine(a.Cosine), Norms: runlog.Numbers(a.Norms)}
		if f := a.Full; f != nil {
			s.Full = &sublayerFull{runlog.Number(f.Kappa), runlog.Numbers(f.Sensitivities), runlog.Number(f.SumSensitivity), runlog.Number(f.SumNorm)}
		}
		r.Sublayers = append(r.Sublayers, s)
	}
}

func (r *kappaReport) print(w io.Writer) error {
	text := func(v *runlog.Number) string {
		if v == nil {
			return "-"
		}
		return fmt.Sprintf("%.4f", *v)
	}
	list := func(vs []runlog.Number) string {
		var all []string
		for _, v := range vs {
			all = append(all, fmt.Sprintf("%.3g", v))
		}
		return strings.Join(all, " ")
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	head := "sublayer\tkappa_G\tcosine\tgradient norm of each visit"
	if r.Full != nil {
		head = "sublayer\tkappa\tkappa_G\tcosine\tgradient norm of each visit\tsensitivity |U| of each visit"
	}
	fmt.Fprintln(t, head)
	for _, a := range r.Sublayers {
		if f := a.Full; f != nil {
			fmt.Fprintf(t, "%s\t%.4f\t%.4f\t%s\t%s\t%s\n", a.Sublayer, f.Kappa, a.KappaG, text(a.Cosine), list(a.Norms), list(f.Sensitivities))
			continue
		}
		fmt.Fprintf(t, "%s\t%.4f\t%s\t%s\n", a.Sublayer, a.KappaG, text(a.Cosine), list(a.Norms))
	}
	if err := t.Flush(); err != nil {
		return err
	}
	if f := r.Full; f != nil {
		fmt.Fprintf(w, "kappa: max %.4f, median %.4f of %d visits; %d power iterations\n", f.KappaMax, f.KappaMedian, r.Visits, f.Iterations)
	}
	_, err := fmt.Fprintf(w, "kappa_G: max %.4f, median %.4f of %d visits; mean cosine %s\n", r.KappaGMax, r.KappaGMedian, r.Visits, text(r.CosineMean))
	return err
}
