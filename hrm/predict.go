package hrm

import (
	"context"
	"fmt"

	"deeploop/augment"
	"deeploop/internal/predictions"
	"deeploop/internal/runlog"
)

// batchSeen receives an evaluated batch: its metrics and the numbers of its
// rows in the split.
type batchSeen func(m StepMetrics, index []int) error

// eachBatch evaluates the rows of a loader batch by batch.
func eachBatch(ctx context.Context, s *Segment, loader *EvalLoader, progress func(done, total int), seen batchSeen) error {
	rows, index := NewRows(s.Batch, s.Model.Config.SeqLen), make([]int, s.Batch)
	e := NewEvaluator(s)
	done := 0
	for {
		n, err := loader.Next(rows, index)
		if err != nil || n == 0 {
			return err
		}
		m, err := e.Run(ctx, rows, nil)
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
	err = eachBatch(ctx, s, loader, progress, func(m StepMetrics, _ []int) error {
		sum.Add(m)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return sum.perRow(sum.Count), nil
}

// Predict evaluates like Measure and streams arg-max tokens and halt logits of
// every row into a predictions file, never all logits.
func Predict(ctx context.Context, s *Segment, d *augment.Dataset, augmentations int, path string, meta predictions.Meta, progress func(done, total int)) (runlog.Metrics, error) {
	loader, err := NewEvalLoader(d.Test, s.Batch, augmentations)
	if err != nil {
		return nil, err
	}
	c := s.Model.Config
	w, err := predictions.Create(path, meta, loader.Rows(), c.SeqLen)
	if err != nil {
		return nil, err
	}
	defer w.Abort()
	rows := make([]int, 0, loader.Rows()) // row of the split for each row of the file
	preds := make([]uint8, s.Batch*c.SeqLen)
	q := make([]float32, s.Batch)
	ids, tests := make([]int32, s.Batch), make([]int32, s.Batch)
	var sum StepMetrics
	err = eachBatch(ctx, s, loader, progress, func(m StepMetrics, index []int) error {
		sum.Add(m)
		n := len(index)
		for i, row := range index {
			s.predicted(i, preds[i*c.SeqLen:(i+1)*c.SeqLen])
			q[i] = float32(s.Q.QHalt[i])
			puzzle := d.Test.PuzzleOf(row)
			ids[i] = d.Test.PuzzleIdentifiers[puzzle]
			tests[i] = int32(row) - d.Test.PuzzleIndices[puzzle]
		}
		rows = append(rows, index...)
		return w.Append(preds[:n*c.SeqLen], q[:n], ids[:n], tests[:n])
	})
	if err != nil {
		return nil, err
	}
	in, out := make([]byte, c.SeqLen), make([]byte, c.SeqLen)
	err = w.Close(func(row int) ([]uint8, []uint8, error) {
		a, err := d.Test.Inputs.Row(rows[row], in)
		if err != nil {
			return nil, nil, err
		}
		b, err := d.Test.Labels.Row(rows[row], out)
		return a, b, err
	})
	if err != nil {
		return nil, err
	}
	return sum.perRow(sum.Count), nil
}

// predicted copies the arg-max tokens of batch row i, without the task slots.
func (s *Segment) predicted(i int, dst []uint8) {
	c := s.Model.Config
	at := i*c.Positions() + c.PuzzleEmbLen()
	for j, t := range s.Loss.Pred[at : at+c.SeqLen] {
		if t < 0 || t > 255 {
			panic(fmt.Sprintf("hrm: predicted token %d does not fit a byte", t))
		}
		dst[j] = uint8(t)
	}
}
