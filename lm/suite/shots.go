package suite

import (
	"fmt"
	"strings"

	"deeploop/internal/rng"
)

// shots draws the solved examples that come before an item.
type shots struct {
	n     int // examples per item, no more than there are
	seed  uint64
	pool  []Item
	own   bool // the pool is the suite: an item is not its own example
	order []int
}

// newShots takes examples from pool, or from the suite's other items where it
// is nil.
func newShots(o Options, items []Item) *shots {
	s := &shots{n: o.Shots, seed: o.Seed, pool: o.Pool}
	if o.Pool == nil {
		s.pool, s.own = items, true
	}
	available := len(s.pool)
	if s.own {
		available--
	}
	s.n = max(0, min(s.n, available))
	return s
}

// before returns the text before item i.
func (s *shots) before(i int) string {
	if s.n == 0 {
		return ""
	}
	s.order = s.order[:0]
	for j := range s.pool {
		if !s.own || j != i {
			s.order = append(s.order, j)
		}
	}
	r := rng.NewStream(s.seed, fmt.Sprintf("shots of item %d", i))
	var b strings.Builder
	for k := range s.n {
		j := k + r.IntN(len(s.order)-k)
		s.order[k], s.order[j] = s.order[j], s.order[k]
		example := s.pool[s.order[k]]
		context, choice := example.text(example.Gold)
		b.WriteString(context + choice + "\n\n")
	}
	return b.String()
}
