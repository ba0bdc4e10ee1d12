package decode_test

import (
	"context"
	"errors"
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"deeploop/lm/decode"
	"deeploop/lm/decode/decodetest"
)

var ctx = context.Background()

// logProbs of the token after ids, written plainly.
func logProbs(ids []int32, vocab int) []float64 {
	logits := make([]float32, vocab)
	decodetest.Hashed(ids, logits)
	total := 0.0
	for _, v := range logits {
		total += math.Exp(float64(v))
	}
	p := make([]float64, vocab)
	for i, v := range logits {
		p[i] = float64(v) - math.Log(total)
	}
	return p
}

func sequence(n, vocab int) []int32 {
	ids := make([]int32, n)
	for i := range ids {
		ids[i] = int32((i*i + 3*i) % vocab)
	}
	return ids
}

func TestScoreGivesEveryTokensLogProbability(t *testing.T) {
	const vocab = 19
	for _, n := range []int{1, 2, 3, 255, 256, 257, 258, 600} {
		m := &decodetest.Model{MaxLen: 600, Vocab: vocab}
		ids := sequence(n, vocab)
		scores, err := decode.Score(ctx, m, ids, 3)
		require.NoError(t, err)
		require.Len(t, scores, n)
		require.Equal(t, decode.Token{ID: ids[0]}, scores[0], "the first token has no score")
		for i := 1; i < n; i++ {
			s, want := scores[i], logProbs(ids[:i], vocab)
			require.True(t, s.Scored)
			require.Equal(t, ids[i], s.ID)
			require.InDelta(t, want[ids[i]], s.LogProb, 1e-12)
			require.Len(t, s.Top, 3)
			require.InDelta(t, slices.Max(want), s.Top[0].LogProb, 1e-12)
			require.InDelta(t, want[s.Top[0].ID], s.Top[0].LogProb, 1e-12)
			require.Greater(t, s.Top[0].LogProb, s.Top[1].LogProb)
			require.Greater(t, s.Top[1].LogProb, s.Top[2].LogProb)
			for _, c := range s.Top {
				if c.ID == s.ID {
					require.Equal(t, c.LogProb, s.LogProb, "the same number, to the last bit")
				}
			}
		}
	}
}

func TestLikeliestTokensRankEqualOnesByID(t *testing.T) {
	m := &decodetest.Model{MaxLen: 8, Vocab: 6, Logits: func(_ []int32, dst []float32) { copy(dst, []float32{1, 2, 0, 2, 1, 2}) }}
	scores, err := decode.Score(ctx, m, []int32{0, 0}, 99)
	require.NoError(t, err)
	var ids []int32
	for _, c := range scores[1].Top {
		ids = append(ids, c.ID)
	}
	require.Equal(t, []int32{1, 3, 5, 0, 4, 2}, ids)
}

func TestGenerateGreedily(t *testing.T) {
	const vocab = 50
	m := &decodetest.Model{MaxLen: 400, Vocab: vocab}
	ids := sequence(300, vocab)
	var got []int32
	reason, err := decode.Generate(ctx, m, ids, decode.Options{MaxTokens: 20}, func(id int32) error {
		got = append(got, id)
		return nil
	})
	require.NoError(t, err)
	require.Equal(t, decode.ByLength, reason)
	require.Equal(t, 319, m.Len(), "the last token is not read")
	for range 20 {
		p := logProbs(ids, vocab)
		ids = append(ids, int32(slices.Index(p, slices.Max(p))))
	}
	require.Equal(t, ids[300:], got)
}

func TestGenerateIsDeterministicAndStartsAfresh(t *testing.T) {
	m := &decodetest.Model{MaxLen: 100, Vocab: 40}
	run := func(seed uint64) (ids []int32) {
		_, err := decode.Generate(ctx, m, []int32{1, 2}, decode.Options{MaxTokens: 50, Sampling: decode.Sampling{Temperature: 1, TopK: 30, TopP: 0.9, Seed: seed}},
			func(id int32) error { ids = append(ids, id); return nil })
		require.NoError(t, err)
		return ids
	}
	first := run(1)
	require.Len(t, first, 50)
	require.NotEqual(t, first, run(2))
	require.Equal(t, first, run(1), "whatever was in the cache before")
}

// Documents end at the separator, which nobody wants to read.
func TestGenerateEndsAtTheSeparator(t *testing.T) {
	m := &decodetest.Model{MaxLen: 50, Vocab: 257, Logits: decodetest.Follow("abcdef")}
	tok := decodetest.Bytes{}
	var got []int32
	emit := func(id int32) error { got = append(got, id); return nil }
	o := decode.Options{MaxTokens: 40, Stop: []int32{tok.Separator()}}
	reason, err := decode.Generate(ctx, m, []int32{'b'}, o, emit)
	require.NoError(t, err)
	require.Equal(t, decode.ByStop, reason)
	require.Equal(t, "cdef", string(tok.AppendBytes(nil, got...)))
	require.NotContains(t, got, tok.Separator())

	got = nil
	o.Stop = []int32{-1, 'e'}
	reason, err = decode.Generate(ctx, m, []int32{'b'}, o, emit)
	require.NoError(t, err)
	require.Equal(t, decode.ByStop, reason)
	require.Equal(t, []int32{'c', 'd'}, got)
}

func TestGenerateEndsAtTheContext(t *testing.T) {
	m := &decodetest.Model{MaxLen: 10, Vocab: 30}
	n := 0
	count := func(int32) error { n++; return nil }
	reason, err := decode.Generate(ctx, m, sequence(7, 30), decode.Options{MaxTokens: 100}, count)
	require.NoError(t, err)
	require.Equal(t, decode.ByContext, reason)
	require.Equal(t, 4, n, "three tokens that are read, and one more")

	n = 0
	reason, err = decode.Generate(ctx, m, sequence(10, 30), decode.Options{MaxTokens: 1}, count)
	require.NoError(t, err)
	require.Equal(t, decode.ByLength, reason)
	require.Equal(t, 1, n)
}

// The padding of a vocabulary is never drawn nor named, but has probability.
func TestPaddingIsNeverDrawn(t *testing.T) {
	pad := func(_ []int32, dst []float32) { copy(dst, []float32{0, 1, 0, 9, 9}) }
	m := &decodetest.Model{MaxLen: 100, Vocab: 5, Logits: pad}
	for _, temperature := range []float64{0, 5} {
		_, err := decode.Generate(ctx, m, []int32{0}, decode.Options{MaxTokens: 90, Vocabulary: 3, Sampling: decode.Sampling{Temperature: temperature}},
			func(id int32) error { require.Less(t, id, int32(3)); return nil })
		require.NoError(t, err)
	}
	var last decode.Token
	_, err := decode.Complete(ctx, m, decode.Request{Prompt: []int32{0}, MaxTokens: 1, Scores: true, Top: 5, Vocabulary: 3}, func(t decode.Token) error {
		last = t
		return nil
	})
	require.NoError(t, err)
	require.Len(t, last.Top, 3)
	require.Equal(t, int32(1), last.Top[0].ID)
	require.Less(t, last.LogProb, -8.0)
}

func TestCompleteEchoesScoresAndDraws(t *testing.T) {
	const vocab = 23
	m := &decodetest.Model{MaxLen: 20, Vocab: vocab}
	prompt := sequence(6, vocab)
	for _, c := range []struct {
		r    decode.Request
		want int
	}{
		{decode.Request{Echo: true, Scores: true, Top: 1, MaxTokens: 1}, 7},
		{decode.Request{Echo: true, Scores: true, MaxTokens: 0}, 6},
		{decode.Request{Echo: true, MaxTokens: 2}, 8},
		{decode.Request{Echo: true}, 6},
		{decode.Request{Scores: true, Top: 2, MaxTokens: 3}, 3},
		{decode.Request{}, 0},
	} {
		c.r.Prompt = prompt
		var all []decode.Token
		reason, err := decode.Complete(ctx, m, c.r, func(t decode.Token) error { all = append(all, t); return nil })
		require.NoError(t, err)
		require.Equal(t, decode.ByLength, reason)
		require.Len(t, all, c.want, "%+v", c.r)
		ids := slices.Clone(prompt)
		at := len(prompt)
		if c.r.Echo {
			at = 0
		}
		for i, tok := range all {
			drawn := at+i >= len(prompt)
			require.Equal(t, drawn, tok.Drawn)
			if drawn {
				ids = append(ids, tok.ID)
			}
			require.Equal(t, ids[at+i], tok.ID)
			require.Equal(t, c.r.Scores && at+i > 0, tok.Scored)
			if tok.Scored {
				require.InDelta(t, logProbs(ids[:at+i], vocab)[tok.ID], tok.LogProb, 1e-12)
				require.Len(t, tok.Top, c.r.Top)
			}
		}
	}
}

// The token that ends the text is one of the scored positions.
func TestTheEndHasAScoreToo(t *testing.T) {
	m := &decodetest.Model{MaxLen: 50, Vocab: 257, Logits: decodetest.Follow("ab")}
	var all []decode.Token
	_, err := decode.Complete(ctx, m, decode.Request{Prompt: []int32{'a', 'b'}, MaxTokens: 5, Echo: true, Scores: true, Top: 1, Stop: []int32{decodetest.Separator}},
		func(t decode.Token) error { all = append(all, t); return nil })
	require.NoError(t, err)
	require.Len(t, all, 3)
	require.True(t, all[2].End && all[2].Scored)
	require.Equal(t, decodetest.Separator, all[2].ID)
}

func TestCompleteRefusesRequests(t *testing.T) {
	m := &decodetest.Model{MaxLen: 4, Vocab: 5}
	for _, c := range []struct {
		r    decode.Request
		says string
	}{
		{decode.Request{}, "the prompt is empty"},
		{decode.Request{Prompt: []int32{1, 2, 3, 4, 0}}, "the prompt has 5 tokens, more than the model's context of 4"},
		{decode.Request{Prompt: []int32{1, 5}}, "token 1 of the prompt is 5, expected ids from 0 to 4"},
		{decode.Request{Prompt: []int32{-1}}, "token 0 of the prompt is -1"},
		{decode.Request{Prompt: []int32{1}, MaxTokens: -1}, "max_tokens is -1"},
		{decode.Request{Prompt: []int32{1}, Sampling: decode.Sampling{TopP: 2}}, "top_p is 2"},
	} {
		_, err := decode.Complete(ctx, m, c.r, func(decode.Token) error { return nil })
		var in *decode.InputError
		require.ErrorAs(t, err, &in)
		require.ErrorContains(t, err, c.says)
	}
}

func TestCompleteEndsEarly(t *testing.T) {
	m := &decodetest.Model{MaxLen: 2000, Vocab: 5}
	canceled, cancel := context.WithCancel(ctx)
	n := 0
	_, err := decode.Generate(canceled, m, []int32{1}, decode.Options{MaxTokens: 1000}, func(int32) error {
		if n++; n == 10 {
			cancel()
		}
		return nil
	})
	require.ErrorIs(t, err, context.Canceled)
	require.Equal(t, 10, n)

	m.Read = 0
	_, err = decode.Score(canceled, m, sequence(2000, 5), 0)
	require.ErrorIs(t, err, context.Canceled)
	require.Zero(t, m.Read)

	mine := errors.New("mine")
	for _, echo := range []bool{false, true} {
		for _, want := range []error{mine, decode.ErrStop} {
			reason, err := decode.Complete(ctx, m, decode.Request{Prompt: sequence(300, 5), MaxTokens: 3, Echo: echo, Scores: true}, func(t decode.Token) error {
				if t.Drawn || echo && m.Len() > 10 {
					return want
				}
				return nil
			})
			if want == mine {
				require.ErrorIs(t, err, mine)
			} else {
				require.NoError(t, err)
				require.Equal(t, decode.ByStop, reason)
			}
		}
	}
	m.Logits = func(_ []int32, dst []float32) { dst[3] = float32(math.NaN()) }
	_, err = decode.Score(ctx, m, []int32{1, 2}, 0)
	require.ErrorContains(t, err, "not finite")
}

func TestSequenceSharesBeginnings(t *testing.T) {
	const vocab = 17
	m := &decodetest.Model{MaxLen: 700, Vocab: vocab}
	s := decode.NewSequence(m)
	base := sequence(600, vocab)
	set := func(ids []int32, from int) int {
		t.Helper()
		before := m.Read
		next := from
		require.NoError(t, s.Set(ctx, ids, from, func(i int, logits []float32) error {
			require.Equal(t, next, i)
			next++
			want := make([]float32, vocab)
			decodetest.Hashed(ids[:i+1], want)
			require.Equal(t, want, logits)
			return nil
		}))
		require.Equal(t, len(ids), next)
		require.Equal(t, len(ids), m.Len())
		return m.Read - before
	}
	require.Equal(t, 600, set(base, 590))
	require.Equal(t, 10, set(base, 590), "logits are wanted from 590 on")
	require.Equal(t, 9, set(append(slices.Clone(base[:595]), 1, 2, 3, 4), 590))
	require.Equal(t, 300, set(base[:300], 0))
	require.Equal(t, 101, set(base[:301], 200))
	other := slices.Clone(base[:50])
	other[20]++
	require.Equal(t, 30, set(other, 49))

	require.Error(t, s.Set(ctx, sequence(701, vocab), 0, func(int, []float32) error { return nil }))
	require.Zero(t, m.Len(), "nothing is left of what failed")
	require.Equal(t, 5, set(base[:5], 4))
}

func TestVocabulary(t *testing.T) {
	m := &decodetest.Model{Vocab: 320}
	require.Equal(t, 257, decode.Vocabulary(m, decodetest.Bytes{}))
	m.Vocab = 100
	require.Equal(t, 100, decode.Vocabulary(m, decodetest.Bytes{}))
}
