package voting

import (
	"fmt"
	"slices"
)

// Curve counts the same rows several times over, each time with fewer
// augmented copies of a task: what pass@K would be had the evaluation made
// only so many. Copies are taken in the order of their rows.
type Curve struct {
	copies   []int // most copies beside the original, ascending
	counters []*Counter
	augs     Augmentations
	place    map[int32]int // identifier -> how many of its task came before it
	met      map[int]int   // task -> identifiers met
}

// CurvePoint is one count.
type CurvePoint struct {
	Copies  int // augmented copies beside the original, at most
	Votes   int // rows counted
	Results []TaskResult
}

// NewCurve counts with at most each of the given numbers of copies (0 is the
// first copy alone, the original where it has rows). newCounter makes a counter
// for each.
func NewCurve(copies []int, augs Augmentations, newCounter func() *Counter) *Curve {
	c := &Curve{copies: slices.Sorted(slices.Values(copies)), augs: augs, place: map[int32]int{}, met: map[int]int{}}
	if len(c.copies) > 0 && c.copies[0] < 0 {
		panic(fmt.Sprintf("voting: NewCurve with %d copies", c.copies[0]))
	}
	for range c.copies {
		c.counters = append(c.counters, newCounter())
	}
	return c
}

// Add counts a batch; see Counter.Add.
func (c *Curve) Add(b Rows) error {
	n := len(b.Identifiers)
	if n == 0 {
		return nil
	}
	numbers := make([]int, n)
	for i, id := range b.Identifiers {
		numbers[i] = c.number(id)
	}
	for k, most := range c.copies {
		if err := c.counters[k].Add(b.only(func(i int) bool { return numbers[i] <= most })); err != nil {
			return err
		}
	}
	return nil
}

// number returns how many copies of its task were met before the identifier.
func (c *Curve) number(id int32) int {
	if at, ok := c.place[id]; ok {
		return at
	}
	task := c.augs.Task(id) // -1 fails in the counter
	at := c.met[task]
	c.place[id], c.met[task] = at, at+1
	return at
}

// Points returns the counts, fewest copies first.
func (c *Curve) Points() []CurvePoint {
	points := make([]CurvePoint, len(c.copies))
	for i, counter := range c.counters {
		v := counter.Votes()
		points[i] = CurvePoint{Copies: c.copies[i], Votes: v.Rows, Results: v.Results()}
	}
	return points
}

// only copies the chosen rows of a batch.
func (b Rows) only(chosen func(i int) bool) Rows {
	n := len(b.Identifiers)
	s := len(b.Preds) / n
	var out Rows
	if b.TestIndex != nil {
		out.TestIndex = []int32{}
	}
	for i := range n {
		if !chosen(i) {
			continue
		}
		out.Identifiers, out.QHalt = append(out.Identifiers, b.Identifiers[i]), append(out.QHalt, b.QHalt[i])
		out.Preds = append(out.Preds, b.Preds[i*s:(i+1)*s]...)
		if b.TestIndex != nil {
			out.TestIndex = append(out.TestIndex, b.TestIndex[i])
		} else {
			out.Inputs = append(out.Inputs, b.Inputs[i*s:(i+1)*s]...)
		}
	}
	return out
}
