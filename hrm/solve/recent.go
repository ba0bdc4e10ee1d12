package solve

import "deeploop/hrm"

// recent averages over the last steps.
type recent struct {
	loss         float64
	cells, exact share
	any          bool
}

// share is a decaying mean over rows that halted.
type share struct{ sum, count float64 }

// memory is what a step leaves of the averages.
const memory = 0.95

func (s *share) add(sum, count float64) {
	s.sum, s.count = memory*s.sum+sum, memory*s.count+count
}

func (s share) mean() float64 {
	if s.count == 0 {
		return 0
	}
	return s.sum / s.count
}

func (r *recent) add(m hrm.StepMetrics, rows int) {
	loss := m.LMLoss / float64(rows)
	if !r.any {
		r.loss, r.any = loss, true
	}
	r.loss = memory*r.loss + (1-memory)*loss
	r.cells.add(m.Accuracy, float64(m.Count))
	r.exact.add(m.ExactAccuracy, float64(m.Count))
}
