package decode

import (
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"deeploop/internal/rng"
)

// shares is how often each token is drawn.
func shares(t *testing.T, s Sampling, logits []float32, n int) []float64 {
	t.Helper()
	draw := newSampler(s)
	count := make([]float64, len(logits))
	for range n {
		id, err := draw.draw(logits)
		require.NoError(t, err)
		count[id]++
	}
	for i := range count {
		count[i] /= float64(n)
	}
	return count
}

// wanted are the probabilities by the documented order, written plainly.
func wanted(s Sampling, logits []float32) []float64 {
	ids := make([]int, len(logits))
	p := make([]float64, len(logits))
	for i, v := range logits {
		ids[i], p[i] = i, math.Exp(float64(v)/s.Temperature)
	}
	slices.SortStableFunc(ids, func(a, b int) int {
		if logits[a] > logits[b] {
			return -1
		} else if logits[a] < logits[b] {
			return 1
		}
		return 0
	})
	if s.TopK > 0 {
		ids = ids[:min(s.TopK, len(ids))]
	}
	total := 0.0
	for _, id := range ids {
		total += p[id]
	}
	if s.TopP > 0 {
		sum, n := 0.0, 0
		for n == 0 || n < len(ids) && sum < s.TopP*total {
			sum += p[ids[n]]
			n++
		}
		ids, total = ids[:n], sum
	}
	want := make([]float64, len(logits))
	for _, id := range ids {
		want[id] = p[id] / total
	}
	return want
}

func TestSamplingFollowsTheDocumentedOrder(t *testing.T) {
	logits := []float32{1, 3, 2, 3, -1, 0.5, float32(math.Inf(-1)), 2.5}
	for _, s := range []Sampling{
		{Temperature: 1},
		{Temperature: 0.5},
		{Temperature: 3},
		{Temperature: 1, TopK: 1},
		{Temperature: 1, TopK: 3},
		{Temperature: 1, TopK: 100},
		{Temperature: 1, TopP: 0.5},
		{Temperature: 1, TopP: 1},
		{Temperature: 1, TopP: 1e-9},
		{Temperature: 2, TopP: 0.9},
		{Temperature: 1, TopK: 3, TopP: 0.6}, // after top-k the first two hold 0.6; before, three are needed
		{Temperature: 0.7, TopK: 5, TopP: 0.95},
	} {
		const n = 20000
		got, want := shares(t, s, logits, n), wanted(s, logits)
		for i := range want {
			if want[i] == 0 {
				require.Zero(t, got[i], "%+v token %d", s, i)
			}
			require.InDelta(t, want[i], got[i], 5*math.Sqrt(want[i]*(1-want[i])/n)+1e-12, "%+v token %d", s, i)
		}
	}
}

// The heap gives what a full sort would, also for a large vocabulary.
func TestTopKOfALargeVocabulary(t *testing.T) {
	r := rng.NewStream(1, "test")
	logits := make([]float32, 5003)
	for i := range logits {
		logits[i] = float32(r.IntN(400)) / 10 // with ties
	}
	s := Sampling{Temperature: 4, TopK: 37, Seed: 3}
	want := wanted(s, logits)
	draw := newSampler(s)
	for range 500 {
		id, err := draw.draw(logits)
		require.NoError(t, err)
		require.NotZero(t, want[id])
	}
	kept := 0
	for _, p := range want {
		if p > 0 {
			kept++
		}
	}
	require.Equal(t, 37, kept)
	require.ElementsMatch(t, draw.kept, func() (ids []int32) {
		for i, p := range want {
			if p > 0 {
				ids = append(ids, int32(i))
			}
		}
		return
	}())
}

func TestSamplingIsDeterministic(t *testing.T) {
	logits := make([]float32, 100)
	tokens := func(seed uint64) (ids []int32) {
		s := newSampler(Sampling{Temperature: 1, Seed: seed})
		for range 50 {
			id, err := s.draw(logits)
			require.NoError(t, err)
			ids = append(ids, id)
		}
		return ids
	}
	require.Equal(t, tokens(7), tokens(7))
	require.NotEqual(t, tokens(7), tokens(8))
	// Pinned: a change of the stream or of the order would change everyone's samples.
	require.Equal(t, []int32{20, 86, 70, 72, 78}, tokens(7)[:5])
}

func TestExtremeTemperatures(t *testing.T) {
	logits := []float32{5, 5, 4.999}
	require.Equal(t, []float64{1, 0, 0}, shares(t, Sampling{}, logits, 10), "greedy takes the first of equal logits")
	got := shares(t, Sampling{Temperature: 1e-300}, logits, 1000)
	require.Zero(t, got[2])
	require.InDelta(t, 0.5, got[0], 0.1)
	got = shares(t, Sampling{Temperature: 1e300}, []float32{80, -80}, 1000)
	require.InDelta(t, 0.5, got[0], 0.1)
}

func TestSamplingRefusesSettingsAndLogits(t *testing.T) {
	nan, inf := math.NaN(), math.Inf(1)
	for _, s := range []Sampling{
		{Temperature: -1}, {Temperature: nan}, {Temperature: inf}, {TopK: -1}, {TopP: -0.1}, {TopP: 1.1}, {TopP: nan},
	} {
		var in *InputError
		require.ErrorAs(t, s.Check(), &in, "%+v", s)
	}
	require.NoError(t, Sampling{Temperature: 2, TopK: 3, TopP: 1}.Check())
	for _, logits := range [][]float32{{1, float32(nan)}, {float32(inf), 1}, {float32(-inf), float32(-inf)}} {
		for _, temperature := range []float64{0, 1} {
			_, err := newSampler(Sampling{Temperature: temperature}).draw(logits)
			require.ErrorIs(t, err, errBroken, "%v", logits)
		}
	}
}
