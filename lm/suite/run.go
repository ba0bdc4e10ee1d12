package suite

import (
	"context"
	"fmt"
	"math"
	"unicode/utf8"

	"deeploop/lm/decode"
)

// Options are the settings of Run.
type Options struct {
	Name  string // of the suite, in results and errors
	Shots int    // solved examples before each item, fewer where there are not as many
	Pool  []Item // where they come from; nil is the suite's other items
	Seed  uint64 // of the draw of examples
	// Progress, which may be nil, is called after every item.
	Progress func(done, total int)
}

// Result is what a model reached on a suite.
type Result struct {
	Suite string `json:"suite"`
	N     int    `json:"n"`
	Shots int    `json:"shots"` // examples before each item, as there were enough
	// ShotsAsked is more than Shots where the examples ran out.
	ShotsAsked     int      `json:"shots_asked"`
	Seed           uint64   `json:"seed"`
	Accuracy       float64  `json:"accuracy"`
	StdErr         *float64 `json:"accuracy_stderr"` // null for a single item
	AccuracyNorm   float64  `json:"accuracy_norm"`   // length-normalised
	StdErrNorm     *float64 `json:"accuracy_norm_stderr"`
	Chance         float64  `json:"chance"`       // expected of guessing
	ContextsCut    int      `json:"contexts_cut"` // items of which a context lost its beginning
	Answers        []Answer `json:"-"`
	right, rightBy int
}

// Answer is the model's answer to one item.
type Answer struct {
	LogProbs   []float64 // of the choices
	Chosen     int
	ChosenNorm int // by log-probability per character
}

// Run asks a model all items. The cache is shared between choices and items
// that begin alike.
func Run(ctx context.Context, d decode.Decoder, tok decode.Tokenizer, items []Item, o Options) (Result, error) {
	r := Result{Suite: o.Name, N: len(items), ShotsAsked: o.Shots, Seed: o.Seed}
	bad := func(problem error) error { return &Error{o.Name, 0, problem.Error()} }
	if err := checkVocabulary(d, tok); err != nil {
		return r, bad(err)
	}
	if len(items) == 0 {
		return r, bad(fmt.Errorf("no items"))
	}
	for i, it := range items {
		if err := it.check(); err != nil {
			return r, bad(fmt.Errorf("item %d: %w", i, err))
		}
	}
	shots := newShots(o, items)
	r.Shots = shots.n
	seq := decode.NewSequence(d)
	for i, it := range items {
		a, cut, err := ask(ctx, seq, tok, it, shots.before(i), d.Context()+1)
		if err != nil {
			if ctx.Err() != nil {
				return r, ctx.Err()
			}
			return r, fmt.Errorf("%s: item %d: %w", o.Name, i, err)
		}
		r.add(it, a, cut)
		if o.Progress != nil {
			o.Progress(i+1, len(items))
		}
	}
	r.finish()
	return r, nil
}

// ask scores the choices of an item. The model reads one token less than
// limit: nobody asks what follows the last.
func ask(ctx context.Context, seq *decode.Sequence, tok decode.Tokenizer, it Item, before string, limit int) (a Answer, cut bool, err error) {
	for i := range it.Choices {
		context, choice := it.text(i)
		e, err := encode(tok, before+context, choice, limit)
		if err != nil {
			return a, cut, &Error{Problem: err.Error()}
		}
		cut = cut || e.cut
		sum := 0.0
		last := len(e.ids) - 1
		err = seq.Set(ctx, e.ids[:last], e.start-1, func(at int, logits []float32) error {
			p, err := decode.LogProb(logits, e.ids[at+1])
			sum += p
			return err
		})
		if err != nil {
			return a, cut, err
		}
		a.LogProbs = append(a.LogProbs, sum)
	}
	norm := make([]float64, len(it.Choices))
	for i, p := range a.LogProbs {
		norm[i] = p / float64(max(1, utf8.RuneCountInString(it.Choices[i])))
	}
	a.Chosen, a.ChosenNorm = first(a.LogProbs), first(norm)
	return a, cut, nil
}

// first is the index of the largest, the first of equal ones.
func first(v []float64) int {
	best := 0
	for i := range v {
		if v[i] > v[best] {
			best = i
		}
	}
	return best
}

func (r *Result) add(it Item, a Answer, cut bool) {
	r.Answers = append(r.Answers, a)
	if a.Chosen == it.Gold {
		r.right++
	}
	if a.ChosenNorm == it.Gold {
		r.rightBy++
	}
	r.Chance += 1 / float64(len(it.Choices))
	if cut {
		r.ContextsCut++
	}
}

func (r *Result) finish() {
	n := float64(r.N)
	r.Accuracy, r.AccuracyNorm = float64(r.right)/n, float64(r.rightBy)/n
	r.Chance /= n
	r.StdErr, r.StdErrNorm = stdErr(r.Accuracy, r.N), stdErr(r.AccuracyNorm, r.N)
}

// stdErr is the standard error of a share p of n, nil where it has none.
func stdErr(p float64, n int) *float64 {
	if n < 2 {
		return nil
	}
	e := math.Sqrt(p * (1 - p) / float64(n-1))
	return &e
}
