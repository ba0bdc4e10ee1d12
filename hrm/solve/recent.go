package solve

import "deeploop/hrm"

// recent averages over the last steps.
type recent struct {
	loss         float64
	cells, exact share
	any          bool

	of map[Treatment]*share // exact, of the rows of each treatment drawn
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

// rows adds to each treatment what became of its rows that halted in the
// learner's last step.
func (r *recent) rows(l *hrm.Learner, views []View) {
	type sum struct{ right, rows float64 }
	sums := map[Treatment]sum{}
	for i, halted := range l.Carry.Halted {
		loss := l.Segment.Loss
		if !halted || loss.Valid[i] == 0 {
			continue
		}
		t := views[l.Carry.Current.IDs[i]-1].Treatment
		s := sums[t]
		s.rows++
		if loss.Exact(i) {
			s.right++
		}
		sums[t] = s
	}
	for t, s := range sums {
		if r.of[t] == nil {
			r.of[t] = &share{}
		}
		r.of[t].add(s.right, s.rows)
	}
}

// best is the share of the treatment whose rows are right most often.
func (r *recent) best() float64 {
	best := 0.0
	for _, s := range r.of {
		best = max(best, s.mean())
	}
	return best
}

// learnedShare of its rows all right is when a treatment's demonstrations are
// learned. hopelessShare of what the best treatment has is where one has hardly
// begun: where colours have a meaning, shuffling them leaves nothing to learn.
const learnedShare, hopelessShare = 0.95, 0.1

// hopeless reports whether a treatment is far behind the best. Not drawn is.
func (r *recent) hopeless(t Treatment) bool {
	s := r.of[t]
	return s == nil || s.mean() < hopelessShare*r.best()
}

// learned reports whether some treatment's demonstrations are learned. Others
// may follow, but a second model adds more than they do (RESULTS.md).
func (r *recent) learned() bool { return r.best() >= learnedShare }

func (r *recent) add(m hrm.StepMetrics, rows int) {
	loss := m.LMLoss / float64(rows)
	if !r.any {
		r.loss, r.any = loss, true
	}
	r.loss = memory*r.loss + (1-memory)*loss
	r.cells.add(m.Accuracy, float64(m.Count))
	r.exact.add(m.ExactAccuracy, float64(m.Count))
}
