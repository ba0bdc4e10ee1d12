package suite

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"deeploop/lm/decode"
	"deeploop/lm/decode/decodetest"
)

var bytesTok = decodetest.Bytes{}

// merging joins "an" into one token and single spaces to the letter after
// them, as byte-pair encodings do.
type merging struct{ decodetest.Bytes }

func (merging) Name() string     { return "merging" }
func (merging) VocabSize() int   { return 257 + 1 + 256 }
func (merging) Separator() int32 { return decodetest.Separator }

func (merging) Append(dst []int32, text []byte) []int32 {
	for i := 0; i < len(text); i++ {
		switch rest := text[i:]; {
		case len(rest) > 1 && rest[0] == 'a' && rest[1] == 'n':
			dst = append(dst, 257)
			i++
		case len(rest) > 1 && rest[0] == ' ' && rest[1] != ' ':
			dst = append(dst, 258+int32(rest[1]))
			i++
		default:
			dst = append(dst, int32(rest[0]))
		}
	}
	return dst
}

func ptr[T any](v T) *T { return &v }

func TestContextAndChoiceAreEncodedTogether(t *testing.T) {
	for _, c := range []struct {
		context, choice string
		tok             decode.Tokenizer
		start           int
		ids             []int32
	}{
		{"ab", " c", merging{}, 2, []int32{'a', 'b', 258 + 'c'}},
		{"ab ", "c", merging{}, 2, []int32{'a', 'b', 258 + 'c'}}, // the space goes to the choice
		{"ab  ", "c", merging{}, 2, []int32{'a', 'b', ' ', 258 + 'c'}},
		{"ba", "n", merging{}, 1, []int32{'b', 257}}, // merges across the border
		{"", "cd", merging{}, 1, []int32{256, 'c', 'd'}},
		{"a", "n", merging{}, 1, []int32{256, 257}},
		{" \n", "x", bytesTok, 1, []int32{256, ' ', '\n', 'x'}},
		{"ab", " c", bytesTok, 2, []int32{'a', 'b', ' ', 'c'}},
	} {
		e, err := encode(c.tok, c.context, c.choice, 100)
		require.NoError(t, err)
		require.Equal(t, encoded{ids: c.ids, start: c.start}, e, "%q %q", c.context, c.choice)
	}
	_, err := encode(decodetest.Bytes{NoSeparator: true}, "", "x", 100)
	require.ErrorContains(t, err, "no document separator")
	_, err = encode(decodetest.Bytes{Unknown: "#"}, "a#", "x", 100)
	require.ErrorContains(t, err, "not in the vocabulary")
	_, err = encode(bytesTok, "x", "", 100)
	require.ErrorContains(t, err, "no token of its own")

	e, err := encode(bytesTok, "abcdef", "gh", 5)
	require.NoError(t, err)
	require.Equal(t, encoded{ids: []int32{'d', 'e', 'f', 'g', 'h'}, start: 3, cut: true}, e)
	e, err = encode(bytesTok, "abcdef", "ghij", 5)
	require.NoError(t, err)
	require.Equal(t, encoded{ids: []int32{'f', 'g', 'h', 'i', 'j'}, start: 1, cut: true}, e, "one token of context stays")
	_, err = encode(bytesTok, "abcdef", "ghijk", 5)
	require.ErrorContains(t, err, "a choice has 5 tokens, more than the model can read after a context (4)")
}

func TestDelimiter(t *testing.T) {
	for _, c := range []struct {
		it   Item
		want string
	}{
		{Item{Context: "a", Choices: []string{"b"}}, "a| b"},
		{Item{Context: "a ", Choices: []string{"b"}}, "a |b"},
		{Item{Context: "a\n", Choices: []string{"b"}}, "a\n|b"},
		{Item{Context: "a", Choices: []string{" b"}}, "a| b"},
		{Item{Context: "", Choices: []string{"b"}}, "|b"},
		{Item{Context: "a", Choices: []string{"b"}, Delimiter: ptr("")}, "a|b"},
		{Item{Context: "a ", Choices: []string{"b"}, Delimiter: ptr(": ")}, "a |: b"},
	} {
		context, choice := c.it.text(0)
		require.Equal(t, c.want, context+"|"+choice)
	}
}

// score is the sum of log-probabilities of ids[start:], written plainly.
func score(ids []int32, start, vocab int) float64 {
	sum := 0.0
	for i := start; i < len(ids); i++ {
		logits := make([]float32, vocab)
		decodetest.Hashed(ids[:i], logits)
		total := 0.0
		for _, v := range logits {
			total += math.Exp(float64(v))
		}
		sum += float64(logits[ids[i]]) - math.Log(total)
	}
	return sum
}

func run(t *testing.T, m *decodetest.Model, items []Item, o Options) Result {
	t.Helper()
	r, err := Run(context.Background(), m, bytesTok, items, o)
	require.NoError(t, err)
	return r
}

func TestScoresAreSumsOfLogProbabilities(t *testing.T) {
	const vocab = 260 // padded
	items := Sample()
	m := &decodetest.Model{MaxLen: 400, Vocab: vocab}
	r := run(t, m, items, Options{Name: SampleName})
	right, rightNorm := 0, 0
	for i, it := range items {
		best, bestNorm := 0, 0
		want, norm := make([]float64, len(it.Choices)), make([]float64, len(it.Choices))
		for k := range it.Choices {
			c, ch := it.text(k)
			ids := bytesTok.Append(nil, []byte(c+ch))
			want[k] = score(ids, len(c), vocab)
			norm[k] = want[k] / float64(len(it.Choices[k]))
			require.InDelta(t, want[k], r.Answers[i].LogProbs[k], 1e-9)
			if want[k] > want[best] {
				best = k
			}
			if norm[k] > norm[bestNorm] {
				bestNorm = k
			}
		}
		require.Equal(t, best, r.Answers[i].Chosen)
		require.Equal(t, bestNorm, r.Answers[i].ChosenNorm)
		if best == it.Gold {
			right++
		}
		if bestNorm == it.Gold {
			rightNorm++
		}
	}
	n := float64(len(items))
	p := float64(right) / n
	require.Equal(t, len(items), r.N)
	require.InDelta(t, p, r.Accuracy, 1e-15)
	require.InDelta(t, float64(rightNorm)/n, r.AccuracyNorm, 1e-15)
	require.NotEqual(t, r.Accuracy, r.AccuracyNorm, "this model tells the two apart")
	require.InDelta(t, math.Sqrt(p*(1-p)/(n-1)), *r.StdErr, 1e-15)
	require.Zero(t, r.ContextsCut)
}

// A model that has learned the text of the gold choices gets all right.
func TestAModelThatKnowsIsRight(t *testing.T) {
	items := []Item{
		{Context: "x", Choices: []string{"zzz", "abc"}, Gold: 1},
		{Context: "y", Choices: []string{"abc", "acb", "cab"}, Gold: 0},
		{Contexts: []string{"za", "zq"}, Choices: []string{"bc", "bc"}, Gold: 0, Delimiter: ptr("")},
	}
	m := &decodetest.Model{MaxLen: 40, Vocab: 257, Logits: decodetest.Follow(" abc")}
	r := run(t, m, items, Options{Name: "known"})
	require.Equal(t, 1.0, r.Accuracy)
	require.Equal(t, 1.0, r.AccuracyNorm)
	require.Zero(t, *r.StdErr)
	require.InDelta(t, (1/2.+1/3.+1/2.)/3, r.Chance, 1e-12)
	r = run(t, m, items[:1], Options{})
	require.Nil(t, r.StdErr, "one item has no spread")
	b, err := json.Marshal(r)
	require.NoError(t, err)
	require.Contains(t, string(b), `"accuracy_stderr":null`)
}

func TestEqualScoresGoToTheFirstChoice(t *testing.T) {
	m := &decodetest.Model{MaxLen: 40, Vocab: 257, Logits: func(_ []int32, dst []float32) { clear(dst) }}
	r := run(t, m, []Item{{Context: "x", Choices: []string{"ab", "cd", "ef"}, Gold: 0}}, Options{})
	require.Equal(t, 0, r.Answers[0].Chosen)
	require.Equal(t, 0, r.Answers[0].ChosenNorm)
}

// Choices of an item share its context in the cache, and so do items with the
// same examples.
func TestSharedBeginningsAreReadOnce(t *testing.T) {
	long := strings.Repeat("c", 200)
	m := &decodetest.Model{MaxLen: 300, Vocab: 257}
	run(t, m, []Item{{Context: long, Choices: []string{"abc", "xyz", "uvw", "rst"}, Gold: 0}}, Options{})
	require.Less(t, m.Read, 200+4*5)
}

func TestLongContextsAreCutAndCounted(t *testing.T) {
	items := []Item{
		{Context: strings.Repeat("ab ", 30), Choices: []string{"fits", "not"}, Gold: 0},
		{Context: "short", Choices: []string{"yes", "no"}, Gold: 0},
	}
	m := &decodetest.Model{MaxLen: 20, Vocab: 257}
	r := run(t, m, items, Options{})
	require.Equal(t, 1, r.ContextsCut)
	text := items[0].Context + "fits"
	ids := bytesTok.Append(nil, []byte(text[len(text)-21:]))
	require.InDelta(t, score(ids, 21-len(" fits"), 257), r.Answers[0].LogProbs[0], 1e-9)

	_, err := Run(context.Background(), m, bytesTok, []Item{{Context: "a", Choices: []string{"b", strings.Repeat("c", 21)}}}, Options{Name: "s"})
	require.ErrorContains(t, err, "s: item 0: a choice has 22 tokens")
	var bad *Error
	require.ErrorAs(t, err, &bad)
}

func TestShotsAreSolvedExamplesOfOtherItems(t *testing.T) {
	items := Sample()
	s := newShots(Options{Shots: 3, Seed: 5}, items)
	different := map[string]bool{}
	for i, it := range items {
		text := s.before(i)
		require.Equal(t, text, newShots(Options{Shots: 3, Seed: 5}, items).before(i), "as drawn alone")
		examples := strings.Split(strings.TrimSuffix(text, "\n\n"), "\n\n")
		require.Len(t, examples, 3)
		seen := map[string]bool{}
		for _, e := range examples {
			require.False(t, seen[e], "an example twice")
			seen[e] = true
			solved := false
			for j, other := range items {
				c, ch := other.text(other.Gold)
				solved = solved || j != i && e == c+ch
			}
			require.True(t, solved, "%q is no other item with its gold choice", e)
		}
		c, ch := it.text(it.Gold)
		require.NotContains(t, text, c+ch)
		different[text] = true
	}
	require.Greater(t, len(different), len(items)/2)
	require.NotEqual(t, s.before(0), newShots(Options{Shots: 3, Seed: 6}, items).before(0))

	pool := []Item{{Context: "P", Choices: []string{"q", "r"}, Gold: 1}}
	require.Equal(t, "P r\n\n", newShots(Options{Shots: 1, Pool: pool}, items).before(4))
}

// A pool that holds the questions themselves does not give their answers away.
func TestNoItemIsItsOwnExample(t *testing.T) {
	items := Sample()[:4]
	for _, pool := range [][]Item{items, append(Sample()[:4], items...), nil} {
		s := newShots(Options{Shots: 3, Seed: 1, Pool: pool}, items)
		require.Equal(t, 3, s.n)
		for i, it := range items {
			c, ch := it.text(it.Gold)
			require.NotContains(t, s.before(i), c+ch)
		}
	}
	twice := append(Sample()[:2], Sample()[0])
	require.Equal(t, 1, newShots(Options{Shots: 2}, twice).n, "two of the three are one question")
	require.NotContains(t, newShots(Options{Shots: 1}, twice).before(2), twice[0].Context)
}

// Shots come before the context: the score is that of the whole text.
func TestShotsCountInScores(t *testing.T) {
	items := Sample()[:6]
	m := &decodetest.Model{MaxLen: 600, Vocab: 257}
	r := run(t, m, items, Options{Shots: 2, Seed: 9})
	require.Equal(t, 2, r.Shots)
	before := newShots(Options{Shots: 2, Seed: 9}, items).before(4)
	c, ch := items[4].text(0)
	ids := bytesTok.Append(nil, []byte(before+c+ch))
	require.InDelta(t, score(ids, len(before+c), 257), r.Answers[4].LogProbs[0], 1e-9)
}

// Ten shots where one item is all there is.
func TestShotsAreClamped(t *testing.T) {
	m := &decodetest.Model{MaxLen: 100, Vocab: 257}
	one := Sample()[:1]
	for _, c := range []struct {
		items, pool []Item
		want        int
	}{
		{one, nil, 0},
		{Sample()[:2], nil, 1},
		{one, Sample()[1:2], 1},
		{one, one, 0},
		{one, []Item{}, 0},
	} {
		r := run(t, m, c.items, Options{Shots: 10, Pool: c.pool})
		require.Equal(t, c.want, r.Shots)
		require.Equal(t, 10, r.ShotsAsked)
	}
}

func TestRunEndsAndFails(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	m := &decodetest.Model{MaxLen: 400, Vocab: 257}
	n := 0
	_, err := Run(ctx, m, bytesTok, Sample(), Options{Progress: func(done, total int) {
		n = done
		require.Equal(t, len(Sample()), total)
		if done == 3 {
			cancel()
		}
	}})
	require.ErrorIs(t, err, context.Canceled)
	require.Equal(t, 3, n)

	mine := errors.New("mine")
	m.Before = func([]int32) error { return mine }
	_, err = Run(context.Background(), m, bytesTok, Sample(), Options{Name: "s"})
	require.ErrorIs(t, err, mine)

	_, err = Run(context.Background(), &decodetest.Model{MaxLen: 9, Vocab: 65}, bytesTok, Sample(), Options{Name: "s"})
	require.ErrorContains(t, err, "s: tokenizer bytes has 257 ids, the model's vocabulary is 65")
	_, err = Run(context.Background(), m, bytesTok, nil, Options{Name: "s"})
	require.ErrorContains(t, err, "no items")
}

func TestReadSaysWhatIsWrong(t *testing.T) {
	for _, c := range []struct{ text, says string }{
		{"", "f: no items"},
		{"\n \n", "f: no items"},
		{`{"context":"a","choices":["b","c"]}`, `f:1: no "gold"`},
		{`{"choices":["b","c"],"gold":0}`, `no "context"`},
		{`{"context":"a","gold":0}`, `no "choices"`},
		{"\n" + `{"context":"a","choices":["b"],"gold":0}`, "f:2: 1 choice, expected at least 2"},
		{`{"context":"a","choices":["b","c"],"gold":2}`, "gold is 2, expected 0 to 1"},
		{`{"context":"a","choices":["b",""],"gold":0}`, "choice 1 is empty"},
		{`{"context":"a","choices":"bc","gold":0}`, `"choices" is a JSON string, expected a list of strings`},
		{`{"context":"a","choices":["b","c"],"gold":"0"}`, `"gold" is a JSON string, expected a whole number`},
		{`{"context":1,"choices":["b","c"],"gold":0}`, `"context" is a JSON number, expected a string`},
		{`{"contexts":["a"],"choices":["b","c"],"gold":0}`, "1 contexts for 2 choices"},
		{`{"context":"x","contexts":["a","b"],"choices":["b","c"],"gold":0}`, "both context and contexts"},
		{`[1]`, "a JSON array, expected an object"},
		{`{"context":`, "not valid JSON"},
		{strings.Repeat(" ", maxLine) + "{}", "f:1: longer than 8 MiB"},
	} {
		_, err := Read(strings.NewReader(c.text), "f")
		var bad *Error
		require.ErrorAs(t, err, &bad, c.says)
		require.ErrorContains(t, err, c.says)
	}
	items, err := Read(strings.NewReader("\ufeff"+`{"context":"","choices":["b","c"],"gold":1,"id":"x"}`+"\n\n"), "f")
	require.NoError(t, err)
	require.Equal(t, []Item{{Choices: []string{"b", "c"}, Gold: 1}}, items)
}

func TestTheSampleIsBalanced(t *testing.T) {
	items := Sample()
	require.GreaterOrEqual(t, len(items), 20)
	require.LessOrEqual(t, len(items), 40)
	gold := map[int]int{}
	for _, it := range items {
		gold[it.Gold]++
		require.Less(t, len(it.Context)+len(it.Choices[0]), 128, "short enough for small models")
	}
	for g, n := range gold {
		require.LessOrEqual(t, n, len(items)/2, "choice %d is right too often", g)
	}
}
