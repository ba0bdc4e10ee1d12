package hrm

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"deeploop/augment"
	"deeploop/internal/predictions"
	"deeploop/internal/runlog"
)

// batchSeen receives an evaluated batch: its metrics and the numbers of its
// rows in the split.
type batchSeen func(m StepMetrics, index []int) error

// eachBatch evaluates the rows of a loader batch by batch. after, where not
// nil, is called between segments of a batch as Evaluator.Run's each is.
func eachBatch(ctx context.Context, e *Evaluator, loader *EvalLoader, progress func(done, total int), after func(segment int), seen batchSeen) error {
	rows, index := NewRows(e.Segment.Batch, e.Segment.Model.Config.SeqLen), make([]int, e.Segment.Batch)
	done := 0
	for {
		n, err := loader.Next(rows, index)
		if err != nil || n == 0 {
			return err
		}
		m, err := e.Run(ctx, rows, after)
		if err != nil {
			return err
		}
		if err := seen(m, index[:n]); err != nil {
			return err
		}
		done += n
		if progress != nil {
			progress(done, loader.Rows())
		}
	}
}

// Measure evaluates the test split, originals and up to the given number of
// augmented copies (AllAugmentations: all), and returns the reference's
// metrics. Unlabelled rows are predicted but not counted. Losses of q include
// padding rows, as in the reference.
func Measure(ctx context.Context, s *Segment, d *augment.Dataset, augmentations int, progress func(done, total int)) (runlog.Metrics, error) {
	loader, err := NewEvalLoader(d.Test, s.Batch, augmentations)
	if err != nil {
		return nil, err
	}
	var sum StepMetrics
	err = eachBatch(ctx, NewEvaluator(s), loader, progress, nil, func(m StepMetrics, _ []int) error {
		sum.Add(m)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return sum.perRow(sum.Count), nil
}

// Predict evaluates like Measure and streams arg-max tokens and halt logits of
// every row into predictions files, never all logits. meta.HaltSteps is that of
// the model. after names further files, by segments: they get what the model
// answers when it stops so early, exactly as an evaluation of so many segments.
// Either all files are written or, unless writing the last of them fails, none.
func Predict(ctx context.Context, s *Segment, d *augment.Dataset, augmentations int, path string, meta predictions.Meta, after map[int]string, progress func(done, total int)) (runlog.Metrics, error) {
	loader, err := NewEvalLoader(d.Test, s.Batch, augmentations)
	if err != nil {
		return nil, err
	}
	c := s.Model.Config
	files := map[int]*predictions.Writer{}
	create := func(segment int, path string) error {
		if segment < 1 || segment > c.HaltMaxSteps {
			return fmt.Errorf("predict: there is no segment %d of %d", segment, c.HaltMaxSteps)
		}
		meta := meta
		meta.HaltSteps = segment
		w, err := predictions.Create(path, meta, loader.Rows(), c.SeqLen)
		if err == nil {
			files[segment] = w
		}
		return err
	}
	defer func() {
		for _, w := range files {
			w.Abort()
		}
	}()
	if err := create(c.HaltMaxSteps, path); err != nil {
		return nil, err
	}
	for segment, path := range after {
		if files[segment] != nil {
			return nil, fmt.Errorf("predict: the last of %d segments is asked for twice", segment)
		}
		if err := create(segment, path); err != nil {
			return nil, err
		}
	}
	rows := make([]int, 0, loader.Rows()) // row of the split for each row of the file
	ids, tests := make([]int32, s.Batch), make([]int32, s.Batch)
	answers := make(map[int]*answered, len(files))
	for segment := range files {
		answers[segment] = &answered{make([]uint8, s.Batch*c.SeqLen), make([]float32, s.Batch)}
	}
	e := NewEvaluator(s)
	e.At = func(segment int) bool { return files[segment] != nil }
	var sum StepMetrics
	err = eachBatch(ctx, e, loader, progress, func(segment int) { answers[segment].read(s) }, func(m StepMetrics, index []int) error {
		sum.Add(m)
		n := len(index)
		for i, row := range index {
			puzzle := d.Test.PuzzleOf(row)
			ids[i] = d.Test.PuzzleIdentifiers[puzzle]
			tests[i] = int32(row) - d.Test.PuzzleIndices[puzzle]
		}
		rows = append(rows, index...)
		for segment, w := range files {
			a := answers[segment]
			if err := w.Append(a.preds[:n*c.SeqLen], a.q[:n], ids[:n], tests[:n]); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	in, out := make([]byte, c.SeqLen), make([]byte, c.SeqLen)
	source := func(row int) ([]uint8, []uint8, error) {
		a, err := d.Test.Inputs.Row(rows[row], in)
		if err != nil {
			return nil, nil, err
		}
		b, err := d.Test.Labels.Row(rows[row], out)
		return a, b, err
	}
	for _, segment := range slices.Sorted(maps.Keys(files)) { // the main file last
		if err := files[segment].Close(source); err != nil {
			return nil, err
		}
	}
	return sum.perRow(sum.Count), nil
}

// answered is what a batch answers after a segment.
type answered struct {
	preds []uint8   // [batch, SeqLen] arg-max tokens
	q     []float32 // [batch] halt logits
}

func (a *answered) read(s *Segment) {
	t := s.Model.Config.SeqLen
	for i := range a.q {
		s.Predicted(i, a.preds[i*t:(i+1)*t])
		a.q[i] = float32(s.Q.QHalt[i])
	}
}

// Predicted copies the arg-max tokens [SeqLen] of batch row i, without the task
// slots, from the last evaluated segment into dst.
func (s *Segment) Predicted(i int, dst []uint8) {
	c := s.Model.Config
	at := i*c.Positions() + c.PuzzleEmbLen()
	for j, t := range s.Loss.Pred[at : at+c.SeqLen] {
		if t < 0 || t > 255 {
			panic(fmt.Sprintf("hrm: predicted token %d does not fit a byte", t))
		}
		dst[j] = uint8(t)
	}
}
