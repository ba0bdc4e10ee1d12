package hrm

import "context"

// Evaluator runs the fixed maximum of segments on batches from fresh states,
// as the reference evaluates.
type Evaluator struct {
	Segment *Segment
	// At says after which segments the predictions are read for Run's each; nil
	// is after all. The last one's are always read.
	At func(segment int) bool

	halted []bool
	steps  []int32
}

// NewEvaluator wraps a segment (its states are overwritten by each batch).
func NewEvaluator(s *Segment) *Evaluator {
	e := &Evaluator{Segment: s, halted: make([]bool, s.Batch), steps: make([]int32, s.Batch)}
	for i := range e.halted {
		e.halted[i] = true
		e.steps[i] = int32(s.Model.Config.HaltMaxSteps)
	}
	return e
}

// Run evaluates one batch. Predictions, losses and q logits of the last
// segment are in e.Segment afterwards. each, where not nil, is called after
// every segment of e.At (from 1) with that segment's predictions and q logits
// there.
// Between segments it returns ctx's error once that is cancelled.
func (e *Evaluator) Run(ctx context.Context, r Rows, each func(segment int)) (StepMetrics, error) {
	s := e.Segment
	s.load(r)
	for i := range s.Batch {
		s.resetState(i)
	}
	if err := s.Embed(); err != nil {
		return StepMetrics{}, err
	}
	most := s.Model.Config.HaltMaxSteps
	for k := 1; k <= most; k++ {
		if err := ctx.Err(); err != nil {
			return StepMetrics{}, err
		}
		seen := each != nil && (e.At == nil || e.At(k))
		if err := s.Eval(seen || k == most); err != nil {
			return StepMetrics{}, err
		}
		if seen {
			each(k)
		}
	}
	return measure(s, e.steps, e.halted), nil
}
