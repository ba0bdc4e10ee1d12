package view

import (
	"math"
	"strconv"

	"deeploop/internal/runlog"
)

// maxBuckets bounds what is kept of a metric, however long the run.
const maxBuckets = 2048

// series are the values of one metric by step, thinned out: each bucket covers
// as many steps as the others, and when there are too many, two become one.
type series struct {
	width   int // steps of a bucket
	buckets []bucket
}

type bucket struct {
	at          int // (step-1)/width
	first, last int // steps
	n           int
	sum         float64
	low, high   float64
}

// add takes a value; steps do not fall. What is not finite is left out.
func (s *series) add(step int, v float64) {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return
	}
	if s.width == 0 {
		s.width = 1
	}
	s.join(bucket{at: max(0, step-1) / s.width, first: step, last: step, n: 1, sum: v, low: v, high: v})
	for len(s.buckets) > maxBuckets {
		s.width *= 2
		old := s.buckets
		s.buckets = s.buckets[:0]
		for _, b := range old {
			b.at /= 2
			s.join(b)
		}
	}
}

// join adds a bucket to the last one, or behind it.
func (s *series) join(b bucket) {
	if n := len(s.buckets); n > 0 && s.buckets[n-1].at >= b.at {
		l := &s.buckets[n-1]
		l.last, l.n, l.sum = max(l.last, b.last), l.n+b.n, l.sum+b.sum
		l.low, l.high = min(l.low, b.low), max(l.high, b.high)
		return
	}
	s.buckets = append(s.buckets, b)
}

// curve is a series as the page reads it: for each bucket the last step, the
// mean, the smallest and the largest value.
type curve struct {
	Width int             `json:"width"` // steps of a bucket
	Step  []int           `json:"step"`
	Mean  []runlog.Number `json:"mean"`
	Low   []runlog.Number `json:"low"`
	High  []runlog.Number `json:"high"`
}

func (s *series) curve() curve {
	c := curve{Width: max(1, s.width), Step: []int{}, Mean: []runlog.Number{}, Low: []runlog.Number{}, High: []runlog.Number{}}
	for _, b := range s.buckets {
		c.Step = append(c.Step, b.last)
		c.Mean = append(c.Mean, short(b.sum/float64(b.n)))
		c.Low = append(c.Low, short(b.low))
		c.High = append(c.High, short(b.high))
	}
	return c
}

// short drops digits that no picture shows.
func short(v float64) runlog.Number {
	r, err := strconv.ParseFloat(strconv.FormatFloat(v, 'g', 6, 64), 64)
	if err != nil { // beyond the largest number when rounded up
		return runlog.Number(v)
	}
	return runlog.Number(r)
}
