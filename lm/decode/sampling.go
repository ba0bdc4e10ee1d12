package decode

import (
	"math"

	"deeploop/internal/rng"
)

// Sampling says how the next token is drawn. The steps, in this order:
//
//  1. the logits are divided by Temperature; at 0 the largest is taken (the
//     lowest id of equal ones) and the rest does not matter;
//  2. top-k: only the TopK largest stay;
//  3. top-p (nucleus sampling, Holtzman et al. 2019, section 3.1): of what is
//     left, renormalised, only the smallest set of the likeliest tokens stays
//     whose probabilities sum to at least TopP, and always one;
//  4. one of the rest is drawn by its probability.
//
// Equal logits rank by id. A seed and equal logits give equal tokens.
type Sampling struct {
	Temperature float64 // 0 is greedy
	TopK        int     // 0 is no limit
	TopP        float64 // in (0, 1]; 0 is no limit, as 1
	Seed        uint64
}

// Check refuses settings out of range with an *InputError.
func (s Sampling) Check() error {
	switch {
	case !(s.Temperature >= 0) || math.IsInf(s.Temperature, 0):
		return inputErrorf("temperature is %v, expected a number of at least 0", s.Temperature)
	case s.TopK < 0:
		return inputErrorf("top_k is %d, expected at least 0 (0 is no limit)", s.TopK)
	case !(s.TopP >= 0 && s.TopP <= 1):
		return inputErrorf("top_p is %v, expected more than 0 and at most 1", s.TopP)
	}
	return nil
}

// sampler draws tokens one after the other.
type sampler struct {
	Sampling
	stream  *rng.Stream
	weights []float64 // [V], exp((logit - max) / Temperature)
	ids     []int32   // heap of the ids not yet taken
	kept    []int32
}

func newSampler(s Sampling) *sampler {
	return &sampler{Sampling: s, stream: rng.NewStream(s.Seed, "sampling")}
}

// draw returns the next token's id.
func (s *sampler) draw(logits []float32) (int32, error) {
	most, err := maxLogit(logits)
	if err != nil {
		return 0, err
	}
	if s.Temperature == 0 {
		return argMax(logits), nil
	}
	s.weights = s.weights[:0]
	total := 0.0
	for _, v := range logits {
		w := math.Exp((float64(v) - most) / s.Temperature)
		s.weights = append(s.weights, w)
		total += w
	}
	limitK := s.TopK > 0 && s.TopK < len(logits)
	limitP := s.TopP > 0 && s.TopP < 1
	if !limitK && !limitP {
		return s.pick(nil, total), nil
	}
	s.heapify(logits)
	s.kept = s.kept[:0]
	if limitK {
		total = 0
		for range s.TopK {
			id := s.pop(logits)
			s.kept = append(s.kept, id)
			total += s.weights[id]
		}
	}
	if limitP {
		total = s.nucleus(logits, limitK, total)
	}
	return s.pick(s.kept, total), nil
}

// nucleus cuts kept to the likeliest tokens that hold TopP of total; without
// a limit by top-k it takes them from the heap. It returns their weight.
func (s *sampler) nucleus(logits []float32, limitK bool, total float64) float64 {
	sum, n := 0.0, 0
	for sum < s.TopP*total || n == 0 {
		if !limitK {
			if len(s.ids) == 0 {
				break
			}
			s.kept = append(s.kept, s.pop(logits))
		} else if n == len(s.kept) { // rounding
			break
		}
		sum += s.weights[s.kept[n]]
		n++
	}
	s.kept = s.kept[:n]
	return sum
}

// pick draws one of ids, all where nil, by weight.
func (s *sampler) pick(ids []int32, total float64) int32 {
	u := s.stream.Float64() * total
	last := int32(0)
	n := len(ids)
	if ids == nil {
		n = len(s.weights)
	}
	for i := range n {
		id := int32(i)
		if ids != nil {
			id = ids[i]
		}
		if w := s.weights[id]; w > 0 {
			if u < w {
				return id
			}
			u -= w
			last = id
		}
	}
	return last // rounding
}

// The heap orders ids by logit, largest first, then by id.

func before(logits []float32, a, b int32) bool {
	if logits[a] != logits[b] {
		return logits[a] > logits[b]
	}
	return a < b
}

func (s *sampler) heapify(logits []float32) {
	s.ids = s.ids[:0]
	for i := range logits {
		s.ids = append(s.ids, int32(i))
	}
	for i := len(s.ids)/2 - 1; i >= 0; i-- {
		s.sink(logits, i)
	}
}

func (s *sampler) pop(logits []float32) int32 {
	top, last := s.ids[0], len(s.ids)-1
	s.ids[0] = s.ids[last]
	s.ids = s.ids[:last]
	s.sink(logits, 0)
	return top
}

func (s *sampler) sink(logits []float32, i int) {
	for {
		child := 2*i + 1
		if child >= len(s.ids) {
			return
		}
		if child+1 < len(s.ids) && before(logits, s.ids[child+1], s.ids[child]) {
			child++
		}
		if !before(logits, s.ids[child], s.ids[i]) {
			return
		}
		s.ids[i], s.ids[child] = s.ids[child], s.ids[i]
		i = child
	}
}
