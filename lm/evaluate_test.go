package lm

import (
	"context"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"deeploop/internal/kernel"
	"deeploop/internal/kernel/ref"
)

// sameLength says that every token has two bytes.
func sameLength(int32) int { return 2 }

func newTestForward(t *testing.T, m *Model, batch int) *Forward {
	t.Helper()
	f, err := NewValidation(m, ref.New(1), batch)
	require.NoError(t, err)
	t.Cleanup(f.Close)
	return f
}

// Every token but the first is predicted once, whatever the tail, with what its
// window has before it.
func TestValidateCountsEveryTokenOnce(t *testing.T) {
	c := tiny()
	m, err := NewModel(c.Arch, kernel.Float64, 3)
	require.NoError(t, err)
	shake(m, 2)
	one := newTestForward(t, m, 1)
	for _, batch := range []int{1, 2, 3} {
		f := newTestForward(t, m, batch)
		for n := 2; n < 30; n++ {
			data := tokensOf(n, c.Arch.VocabSize)
			got, err := Validate(t.Context(), f, data, 0, []int{2}, sameLength, nil)
			require.NoError(t, err)
			require.Equal(t, n-1, got[0].Tokens)
			require.Equal(t, 2*(n-1), got[0].Bytes)

			sum, right := 0.0, 0
			for at := 0; at < n-1; at += one.T {
				have := min(one.T, n-1-at)
				clear(one.Tokens)
				copy(one.Tokens, data[at:at+have])
				require.NoError(t, one.Embed())
				require.NoError(t, one.Round())
				require.NoError(t, one.Round())
				logits, err := one.Logits()
				require.NoError(t, err)
				for i := range have {
					y := int(data[at+i+1])
					loss, best := crossEntropy(logits, i, c.Arch.VocabSize, y)
					sum += loss
					if best == y {
						right++
					}
				}
			}
			require.InEpsilon(t, sum/float64(n-1), got[0].Loss, 1e-12)
			require.InEpsilon(t, got[0].Loss/math.Ln2/2, got[0].BitsPerByte, 1e-12)
			require.InDelta(t, float64(right)/float64(n-1), got[0].Accuracy, 1e-12)
		}
	}
}

// crossEntropy is -log softmax(row i)[y], and the most likely token.
func crossEntropy(logits kernel.Buf, i, vocabulary, y int) (loss float64, best int) {
	sum := 0.0
	for v := range vocabulary {
		sum += math.Exp(logits.At(i*vocabulary + v))
		if logits.At(i*vocabulary+v) > logits.At(i*vocabulary+best) {
			best = v
		}
	}
	return math.Log(sum) - logits.At(i*vocabulary+y), best
}

// Several loop counts in one pass give what each gives alone, in their order.
func TestValidateAtSeveralLoopCounts(t *testing.T) {
	for _, act := range []kernel.DType{kernel.Float32, kernel.BFloat16} {
		c := tiny()
		m, err := NewModel(c.Arch, act, 3)
		require.NoError(t, err)
		shake(m, 2)
		f := newTestForward(t, m, 2)
		data := tokensOf(45, c.Arch.VocabSize)
		counts := []int{3, 1, 5, 3}
		together, err := Validate(t.Context(), f, data, 0, counts, nil, nil)
		require.NoError(t, err)
		for i, r := range counts {
			alone, err := Validate(t.Context(), f, data, 0, []int{r}, nil, nil)
			require.NoError(t, err)
			require.Equal(t, alone[0], together[i])
			require.Equal(t, r, alone[0].Loops)
			require.Zero(t, alone[0].BitsPerByte)
		}
		require.NotEqual(t, together[0].Loss, together[1].Loss)
	}
}

func TestValidateLimit(t *testing.T) {
	c := tiny()
	m, err := NewModel(c.Arch, kernel.Float32, 3)
	require.NoError(t, err)
	f := newTestForward(t, m, 2)
	data := tokensOf(45, c.Arch.VocabSize)
	for _, limit := range []int64{2, 13, 14, 44, 45, 1000} {
		n := min(limit, 45)
		got, err := Validate(t.Context(), f, data, limit, []int{1}, nil, nil)
		require.NoError(t, err)
		want, err := Validate(t.Context(), f, data[:n], 0, []int{1}, nil, nil)
		require.NoError(t, err)
		require.Equal(t, want, got)
		require.Equal(t, int(n)-1, got[0].Tokens)
	}
	_, err = Validate(t.Context(), f, data, 1, []int{1}, nil, nil)
	require.ErrorContains(t, err, "has 1 tokens, at least 2 are needed")
	_, err = Validate(t.Context(), f, memory(nil), 0, []int{1}, nil, nil)
	require.ErrorContains(t, err, "has 0 tokens")
}

func TestValidateReportsAndStops(t *testing.T) {
	c := tiny()
	m, err := NewModel(c.Arch, kernel.Float32, 3)
	require.NoError(t, err)
	f := newTestForward(t, m, 2)
	ctx, cancel := context.WithCancel(t.Context())
	var seen [][2]int
	_, err = Validate(ctx, f, tokensOf(45, c.Arch.VocabSize), 0, []int{1}, nil, func(done, total int) {
		if seen = append(seen, [2]int{done, total}); len(seen) == 2 {
			cancel()
		}
	})
	require.ErrorIs(t, err, context.Canceled)
	require.Equal(t, [][2]int{{2, 8}, {4, 8}}, seen)
}
