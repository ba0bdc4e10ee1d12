package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"deeploop/augment"
	"deeploop/hrm"
	"deeploop/internal/checkpoint"
	"deeploop/internal/cli"
	"deeploop/internal/command"
	"deeploop/internal/files"
	"deeploop/internal/kernel/pick"
	"deeploop/internal/predictions"
	"deeploop/internal/runlog"
	"deeploop/internal/train"
)

// evalFolder holds the evaluations inside a run's folder.
const evalFolder = "eval"

// evalOptions are the flags of hrm eval.
type evalOptions struct {
	command.Trained
	data, out     string
	augmentations int
	weights       string
	batch         int
	depth         hrm.Depth
	after         []int            // also the answers after so many segments
	progress      *runlog.Progress // nil: one of its own
	profile       bool
	force         bool
	compute       command.Compute
	kernelGiven   bool
}

func newEvalCmd(s *cli.Streams) *cobra.Command {
	var o evalOptions
	cmd := &cobra.Command{
		Use:   "eval",
		Short: "Predict the held-out tests with a trained reasoner",
		Long: `Run a trained model on the test split of a dataset, always for the maximum
number of segments, and write the predicted tokens and halt logits of every row
to a predictions file for hrm score.

Without --run and --checkpoint the newest run below runs/ is evaluated: its
best checkpoint, and the average of the weights where the run kept one.`,
		Example: `  hrm eval
  hrm eval --run runs/arc1 --augmentations 100
  hrm eval --checkpoint runs/arc1/checkpoints/step-00000500 --weights raw`,
		RunE: func(c *cobra.Command, _ []string) error {
			o.kernelGiven = c.Flags().Changed("kernel")
			return evalRun(c.Context(), s, o)
		},
	}
	f := cmd.Flags()
	f.SortFlags = false
	o.AddFlags(f, "evaluate")
	f.StringVar(&o.data, "data", "", "dataset `DIR` (default the one the run was trained on)")
	f.IntVar(&o.augmentations, "augmentations", hrm.AllAugmentations, "augmented copies of each test beside the original; -1 is all")
	f.StringVar(&o.weights, "weights", "", "ema or raw (default ema where the run kept it)")
	f.IntVar(&o.depth.HCycles, "H-cycles", 0, "slow cycles per segment (default that of the training)")
	f.IntVar(&o.depth.LCycles, "L-cycles", 0, "fast calls per slow cycle (default that of the training)")
	f.IntVar(&o.depth.HaltMaxSteps, "halt-max-steps", 0, "segments of every row (default that of the training)")
	f.IntSliceVar(&o.after, "after", nil, "`N,N,...`: also write what the model answers after so many segments, for hrm score --curve")
	f.IntVar(&o.batch, "batch", 0, "rows at a time (default the training's global_batch_size)")
	f.StringVar(&o.out, "out", "", "predictions `FILE` (default in the run's folder, below "+evalFolder+"/)")
	f.BoolVar(&o.force, "force", false, "replace a FILE that is no predictions file too")
	f.BoolVar(&o.profile, "profile", false, command.ProfileHelp)
	o.compute.AddFlags(f, "that of the training")
	return cmd
}

func evalRun(ctx context.Context, s *cli.Streams, o evalOptions) error {
	_, err := evaluate(ctx, s, o)
	return err
}

// evaluate is hrm eval; it returns the predictions file.
func evaluate(ctx context.Context, s *cli.Streams, o evalOptions) (string, error) {
	ctx, stop := train.OnInterrupt(command.OrBackground(ctx), func(os.Signal) {})
	defer stop()
	if o.out != "" { // before any work
		if _, err := checkPredictions(o); err != nil {
			return "", err
		}
	}
	ck, c, err := command.OpenTrained[hrm.TrainConfig](o.Trained, program, hrm.Kind)
	if err != nil {
		return "", err
	}
	defer ck.Close()
	d, err := evalDataset(s, o, ck, &c)
	if err != nil {
		return "", err
	}
	defer d.Close()
	warnOtherRows(s, ck, d)
	if o.depth.HCycles < 0 || o.depth.LCycles < 0 || o.depth.HaltMaxSteps < 0 {
		return "", cli.Usagef("--H-cycles, --L-cycles and --halt-max-steps are numbers of at least 1")
	}
	c.Arch = c.Arch.AtDepth(o.depth)
	loader, err := hrm.NewEvalLoader(d.Test, 1, o.augmentations)
	if err != nil {
		return "", &cli.UsageError{Err: err}
	}
	for _, n := range o.after {
		if n < 1 || n > c.Arch.HaltMaxSteps {
			return "", cli.Usagef("--after has %d, expected 1 to %d, the segments of a row", n, c.Arch.HaltMaxSteps)
		}
	}
	batch := o.batch
	if batch == 0 {
		batch = c.GlobalBatchSize
	}
	if batch < 1 {
		return "", cli.Usagef("--batch is %d, expected at least 1", batch)
	}
	batch = min(batch, max(1, loader.Rows()))
	if o.compute.Precision == "" {
		o.compute.Precision, o.compute.PrecisionFrom = c.Precision, "as in the training"
	}
	choice, err := o.compute.Open(s, o.kernelGiven)
	if err != nil {
		return "", err
	}
	defer choice.Backend.Close()
	if err := c.Arch.CheckEvaluation(choice.Precision, batch, runlog.PhysicalBytes()); err != nil {
		return "", err
	}
	progress := o.progress
	if progress == nil {
		progress = command.NewProgress(s, progressItems...)
	}
	defer progress.End()
	progress.Doing("reading checkpoint " + ck.Dir())
	m, weights, err := hrm.LoadModel(ck, c.Arch, choice.Precision, o.weights)
	if err != nil {
		return "", err
	}
	if err := train.CheckWeights(ck, choice.Backend, m.Params()); err != nil {
		return "", err
	}
	prof := command.NewProfiler(o.profile, choice)
	segment, err := hrm.NewSegment(m, prof.Backend(choice), batch)
	if err != nil {
		return "", err
	}
	defer segment.Close()
	digest, err := ck.Digest()
	if err != nil {
		return "", err
	}
	if o.out == "" {
		o.out = evalPath(ck, evalName(ck, weights, d, o, c, choice))
	}
	replaces, err := checkPredictions(o)
	if err != nil {
		return "", err
	}
	after, err := afterFiles(o, c.Arch.HaltMaxSteps)
	if err != nil {
		return "", err
	}
	said := s.Lines()
	fmt.Fprintf(said, "checkpoint %s: step %d, %s weights\n%s\n", ck.Dir(), ck.Step(), weights, describeDataset(d))
	describeModel(said, m)
	fmt.Fprintf(said, "%d test rows, %d segments each\n", loader.Rows(), c.Arch.HaltMaxSteps)
	meta := predictions.Meta{
		Dataset: d.Dir, Checkpoint: ck.Dir(), CheckpointDigest: digest, Step: int64(ck.Step()), Weights: weights,
		HaltSteps: c.Arch.HaltMaxSteps, Augmentations: o.augmentations,
	}
	if d.Manifest != nil {
		meta.DatasetHash = d.Manifest.DatasetHash
	}
	made := command.MissingFolders(filepath.Dir(o.out))
	progress.Doing("the first batch of rows")
	count := prof.Batches(c.Arch.HaltMaxSteps, progress.Counter("predicting"))
	start := time.Now()
	metrics, err := hrm.Predict(ctx, segment, d, o.augmentations, o.out, meta, after, count)
	progress.End()
	if _, bad := prof.Print(s, "evaluation segment"); err == nil { // an interrupted evaluation has one too
		err = bad
	}
	if err != nil {
		command.RemoveEmpty(made)
	}
	if errors.Is(err, context.Canceled) {
		return "", fmt.Errorf("predict: %w, nothing was written", cli.ErrInterrupted)
	}
	if err != nil {
		return "", err
	}
	did := "wrote"
	if replaces {
		did = "replaced"
	}
	fmt.Fprintf(s.Out, "%s %s: %d rows in %.1f s\n", did, o.out, loader.Rows(), time.Since(start).Seconds())
	for _, n := range slices.Sorted(maps.Keys(after)) {
		fmt.Fprintf(s.Out, "%s: after %d of %d segments\n", after[n], n, c.Arch.HaltMaxSteps)
	}
	evalSummary(s, metrics)
	return o.out, nil
}

// afterFiles are the predictions files of --after by segments. The last
// segment's is the main file.
func afterFiles(o evalOptions, most int) (map[int]string, error) {
	after := map[int]string{}
	for _, n := range o.after {
		if n == most {
			continue
		}
		after[n] = predictions.AfterName(o.out, n)
		if _, err := files.Check(after[n], predictions.Kind, o.force, true); err != nil {
			return nil, fmt.Errorf("write predictions: %w", err)
		}
	}
	return after, nil
}

// checkPredictions refuses a file that cannot be written, and says whether it
// holds earlier predictions.
func checkPredictions(o evalOptions) (replaces bool, err error) {
	if replaces, err = files.Check(o.out, predictions.Kind, o.force, true); err != nil {
		return false, fmt.Errorf("write predictions: %w", err)
	}
	return replaces, nil
}

// evalPath is where the predictions of a checkpoint go: in its run's folder.
func evalPath(ck *checkpoint.Reader, name string) string {
	dir := filepath.Dir(ck.Dir())
	if filepath.Base(dir) == checkpoint.Folder {
		dir = filepath.Dir(dir)
	}
	return filepath.Join(dir, evalFolder, name, predictions.FileName)
}

// evalName tells evaluations of a checkpoint apart: all that changes
// predictions is in it, beside weights, copies and dataset only where it is
// not as in the training.
func evalName(ck *checkpoint.Reader, weights string, d *augment.Dataset, o evalOptions, c hrm.TrainConfig, choice pick.Choice) string {
	copies := "all"
	if o.augmentations != hrm.AllAugmentations {
		copies = fmt.Sprint(o.augmentations)
	}
	name := fmt.Sprintf("%s-%s-aug-%s", filepath.Base(ck.Dir()), weights, copies)
	if d.Manifest != nil {
		name += fmt.Sprintf("-data-%.8s", d.Manifest.DatasetHash)
	} else if id, err := hrm.DatasetIdentity(d); err == nil { // of the reference builder
		name += fmt.Sprintf("-names-%.8s", id.SHA256)
	}
	for _, d := range []struct {
		tag string
		n   int
	}{{"H", o.depth.HCycles}, {"L", o.depth.LCycles}, {"segments", o.depth.HaltMaxSteps}} {
		if d.n != 0 {
			name += fmt.Sprintf("-%s%d", d.tag, d.n)
		}
	}
	if precision := strings.ToLower(choice.Precision.String()); o.compute.Precision != c.Precision && precision != c.Precision {
		name += "-" + precision
	}
	// A training that left the kernel to the machine is evaluated alike.
	kernel := choice.Backend.Name()
	if asked, _ := o.compute.Asked(o.kernelGiven); asked != c.Kernel && (asked != pick.Auto || kernel != c.Kernel) {
		name += "-" + kernel
	}
	return name
}

func evalSummary(s *cli.Streams, m runlog.Metrics) {
	if _, ok := m["exact_accuracy"]; !ok {
		fmt.Fprintln(s.Out, "no row has an answer to compare with")
		return
	}
	for _, line := range []struct{ label, key string }{
		{"cells right", "accuracy"}, {"rows exactly right", "exact_accuracy"}, {"halt decisions right", "q_halt_accuracy"},
	} {
		fmt.Fprintf(s.Out, "%-21s %6.2f%%\n", line.label, 100*m[line.key])
	}
	fmt.Fprintf(s.Out, "%-21s %s\n", "next", "hrm score")
}
