package suite

import (
	"fmt"
	"strings"

	"deeploop/internal/rng"
)

// shots draws the solved examples that come before an item.
type shots struct {
	n         int // examples per item, no more than there are for each
	seed      uint64
	pool      []Item
	questions []string // key of each item
	keys      []string // of the pool
	order     []int
}

// newShots takes examples from pool, or from the suite's items where it is
// nil. An item is never its own example, nor is another that asks the same.
func newShots(o Options, items []Item) *shots {
	s := &shots{n: o.Shots, seed: o.Seed, pool: o.Pool, questions: keysOf(items)}
	if s.pool == nil {
		s.pool = items
	}
	s.keys = keysOf(s.pool)
	alike := map[string]int{}
	for _, k := range s.keys {
		alike[k]++
	}
	for _, q := range s.questions {
		s.n = min(s.n, len(s.pool)-alike[q])
	}
	return s
}

// keysOf names items by what they ask.
func keysOf(items []Item) []string {
	keys := make([]string, len(items))
	for i, it := range items {
		keys[i] = fmt.Sprintf("%q %q %q", it.Context, it.Contexts, it.Choices)
	}
	return keys
}

// before returns the text before item i.
func (s *shots) before(i int) string {
	if s.n == 0 {
		return ""
	}
	s.order = s.order[:0]
	for j, key := range s.keys {
		if key != s.questions[i] {
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
