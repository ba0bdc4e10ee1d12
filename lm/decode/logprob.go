package decode

import "math"

// Candidate is a token and its log-probability, natural logarithm.
type Candidate struct {
	ID      int32
	LogProb float64
}

// maxLogit returns the largest logit. Logits of -Inf are of tokens that
// cannot follow; NaN, +Inf and nothing but -Inf are errors.
func maxLogit(logits []float32) (float64, error) {
	most := float32(math.Inf(-1))
	for _, v := range logits {
		if v != v {
			return 0, errBroken
		}
		most = max(most, v)
	}
	if math.IsInf(float64(most), 0) {
		return 0, errBroken
	}
	return float64(most), nil
}

// logSumExp returns log sum exp(logits), in float64.
func logSumExp(logits []float32) (float64, error) {
	most, err := maxLogit(logits)
	if err != nil {
		return 0, err
	}
	sum := 0.0
	for _, v := range logits {
		sum += math.Exp(float64(v) - most)
	}
	return most + math.Log(sum), nil
}

// argMax returns the index of the largest logit, the lowest of equal ones.
func argMax(logits []float32) int32 {
	best := 0
	for i, v := range logits {
		if v > logits[best] {
			best = i
		}
	}
	return int32(best)
}

// largest returns the n largest of logits, largest first, equal ones by id,
// as log-probabilities: each logit less logTotal.
func largest(logits []float32, n int, logTotal float64) []Candidate {
	n = min(n, len(logits))
	if n == 0 {
		return nil
	}
	ids := make([]int32, 0, n+1)
	for i, v := range logits {
		if len(ids) == n && v <= logits[ids[n-1]] {
			continue
		}
		at := len(ids)
		for at > 0 && logits[ids[at-1]] < v {
			at--
		}
		ids = append(ids, 0)
		copy(ids[at+1:], ids[at:])
		ids[at] = int32(i)
		ids = ids[:min(len(ids), n)]
	}
	top := make([]Candidate, len(ids))
	for i, id := range ids {
		top[i] = Candidate{id, float64(logits[id]) - logTotal}
	}
	return top
}

// LogProb returns log P(id) under logits [V], in float64.
func LogProb(logits []float32, id int32) (float64, error) {
	total, err := logSumExp(logits)
	return float64(logits[id]) - total, err
}
