package decode

import (
	"context"
	"errors"
	"slices"
)

// Request is what Complete does with one sequence.
type Request struct {
	Prompt    []int32 // at least one token; what has none begins with the separator
	MaxTokens int     // most tokens to draw after the prompt; 0 draws none
	Sampling
	// Stop are ids that end the sequence when drawn, the separator first of
	// all (a negative id is ignored). They are emitted with End set.
	Stop []int32
	// Echo emits the prompt's tokens first.
	Echo bool
	// Scores computes log-probabilities, with the Top likeliest tokens at each
	// position. They are of the model itself, before temperature, top-k and
	// top-p.
	Scores bool
	Top    int
	// Vocabulary is the number of ids that may be drawn or named as likely;
	// 0 is all the model has. The padding of a vocabulary has no text, but
	// takes part in probabilities, as in training.
	Vocabulary int
}

// Token is one position of a sequence.
type Token struct {
	ID     int32
	Drawn  bool // not of the prompt
	End    bool // ended the sequence: its text is not part of the answer
	Scored bool // the fields below hold; never at the first of the sequence
	// LogProb is log P(ID | all before it).
	LogProb float64
	// Top are the likeliest tokens here, likeliest first, equal ones by id; the
	// first is what greedy decoding takes.
	Top []Candidate
}

// Reason says why drawing ended.
type Reason string

// Reasons.
const (
	ByStop    Reason = "stop"    // a stop token was drawn, or emit returned ErrStop
	ByLength  Reason = "length"  // MaxTokens were drawn
	ByContext Reason = "context" // the model can read no more tokens
)

// Check refuses what a decoder cannot do with an *InputError.
func (r Request) Check(d Decoder) error {
	if len(r.Prompt) == 0 {
		return inputErrorf("the prompt is empty")
	}
	if len(r.Prompt) > d.Context() {
		return inputErrorf("the prompt has %d tokens, more than the model's context of %d", len(r.Prompt), d.Context())
	}
	if i := slices.IndexFunc(r.Prompt, func(id int32) bool { return id < 0 || int(id) >= d.VocabSize() }); i >= 0 {
		return inputErrorf("token %d of the prompt is %d, expected ids from 0 to %d", i, r.Prompt[i], d.VocabSize()-1)
	}
	if r.MaxTokens < 0 {
		return inputErrorf("max_tokens is %d, expected at least 0", r.MaxTokens)
	}
	return r.Sampling.Check()
}

// Complete reads the prompt and draws tokens, from an empty cache on. emit
// gets every token once it is known. A drawn token is read by the model only
// when another follows, so a prompt as long as the context has one more.
//
// Errors are an *InputError, the context's, the decoder's or emit's. With
// ErrStop from emit there is none.
func Complete(ctx context.Context, d Decoder, r Request, emit func(Token) error) (Reason, error) {
	if err := r.Check(d); err != nil {
		return "", err
	}
	d.Reset(0)
	reason, err := complete(ctx, d, r, emit)
	if errors.Is(err, ErrStop) {
		return ByStop, nil
	}
	return reason, err
}

func complete(ctx context.Context, d Decoder, r Request, emit func(Token) error) (Reason, error) {
	s := scorer{r: r, vocabulary: d.VocabSize()}
	if r.Vocabulary > 0 {
		s.vocabulary = min(r.Vocabulary, s.vocabulary)
	}
	next, err := s.prompt(ctx, d, emit)
	if err != nil || r.MaxTokens == 0 {
		return ByLength, err
	}
	draw := newSampler(r.Sampling)
	for n := 1; ; n++ {
		id, err := draw.draw(next[:s.vocabulary])
		if err != nil {
			return "", err
		}
		t := Token{ID: id, Drawn: true, End: slices.Contains(r.Stop, id)}
		if err := s.score(&t, next); err != nil {
			return "", err
		}
		if err := emit(t); err != nil {
			return "", err
		}
		switch {
		case t.End:
			return ByStop, nil
		case n == r.MaxTokens:
			return ByLength, nil
		case d.Len() == d.Context():
			return ByContext, nil
		}
		if err := ctx.Err(); err != nil {
			return "", err
		}
		err = d.Append([]int32{id}, 0, func(_ int, logits []float32) error {
			copy(next, logits)
			return nil
		})
		if err != nil {
			return "", err
		}
	}
}

// scorer adds log-probabilities to tokens.
type scorer struct {
	r          Request
	vocabulary int
}

// prompt reads the prompt and returns a copy of the logits after it, nil
// where nothing is drawn.
func (s *scorer) prompt(ctx context.Context, d Decoder, emit func(Token) error) ([]float32, error) {
	ids := s.r.Prompt
	last := len(ids) - 1
	from := last
	if s.r.Echo {
		if s.r.Scores {
			from = 0
		}
		if err := emit(Token{ID: ids[0]}); err != nil {
			return nil, err
		}
		if !s.r.Scores {
			for _, id := range ids[1:] {
				if err := emit(Token{ID: id}); err != nil {
					return nil, err
				}
			}
		}
	}
	if s.r.MaxTokens == 0 { // nobody asks what comes after the last token
		if from == last {
			return nil, nil
		}
		ids, last = ids[:last], last+1
	}
	var next []float32
	err := extend(ctx, d, ids, from, func(i int, logits []float32) error {
		if i == last {
			next = slices.Clone(logits)
			return nil
		}
		t := Token{ID: s.r.Prompt[i+1]}
		if err := s.score(&t, logits); err != nil {
			return err
		}
		return emit(t)
	})
	return next, err
}

// score fills in what logits, those before the token, say about it.
func (s *scorer) score(t *Token, logits []float32) error {
	if !s.r.Scores {
		return nil
	}
	total, err := logSumExp(logits)
	if err != nil {
		return err
	}
	t.Scored = true
	t.LogProb = float64(logits[t.ID]) - total
	t.Top = largest(logits[:s.vocabulary], s.r.Top, total)
	return nil
}

// Options are the settings of Generate.
type Options struct {
	MaxTokens int
	Sampling
	Stop       []int32 // ids that end the text, such as the separator
	Vocabulary int     // see Request
}

// Generate draws tokens after the prompt and gives each to emit, without the
// stop token that ends them.
func Generate(ctx context.Context, d Decoder, prompt []int32, o Options, emit func(id int32) error) (Reason, error) {
	r := Request{Prompt: prompt, MaxTokens: o.MaxTokens, Sampling: o.Sampling, Stop: o.Stop, Vocabulary: o.Vocabulary}
	return Complete(ctx, d, r, func(t Token) error {
		if t.End {
			return nil
		}
		return emit(t.ID)
	})
}

// Score returns the log-probability of every token given those before it,
// with the top likeliest at each position; the first token has none. With
// top >= 1, Top[0].ID is the greedy token.
func Score(ctx context.Context, d Decoder, ids []int32, top int) ([]Token, error) {
	scored := make([]Token, 0, len(ids))
	_, err := Complete(ctx, d, Request{Prompt: ids, Echo: true, Scores: true, Top: top}, func(t Token) error {
		scored = append(scored, t)
		return nil
	})
	return scored, err
}
