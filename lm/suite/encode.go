package suite

import (
	"errors"
	"fmt"
	"strings"
	"unicode"

	"deeploop/lm/decode"
)

// encoded is a context with a choice.
type encoded struct {
	ids   []int32
	start int // index of the choice's first token, at least 1
	cut   bool
}

// encode turns context and choice into at most limit tokens; a context that is
// too long loses its beginning.
func encode(tok decode.Tokenizer, context, choice string, limit int) (encoded, error) {
	if err := tok.Check([]byte(context + choice)); err != nil {
		return encoded{}, fmt.Errorf("%w; ask a model of byte or gpt2 tokens", err)
	}
	trimmed := strings.TrimRightFunc(context, unicode.IsSpace)
	choice = context[len(trimmed):] + choice
	alone := tok.Append(nil, []byte(trimmed))
	e := encoded{ids: tok.Append(nil, []byte(trimmed+choice))}
	for e.start < min(len(alone), len(e.ids)) && alone[e.start] == e.ids[e.start] {
		e.start++
	}
	if e.start == len(e.ids) {
		return e, fmt.Errorf("choice %q has no token of its own", choice)
	}
	if e.start == 0 {
		if tok.Separator() < 0 {
			return e, fmt.Errorf("nothing comes before choice %q, and tokenizer %s has no document separator to begin with", choice, tok.Name())
		}
		e.ids, e.start = append([]int32{tok.Separator()}, e.ids...), 1
	}
	if tokens := len(e.ids) - e.start; tokens >= limit {
		return e, fmt.Errorf("a choice has %d tokens, more than the model can read after a context (%d)", tokens, limit-1)
	}
	if over := len(e.ids) - limit; over > 0 {
		e.ids, e.start, e.cut = e.ids[over:], e.start-over, true
	}
	return e, nil
}

// checkVocabulary refuses a tokenizer that a model does not know.
func checkVocabulary(d decode.Decoder, tok decode.Tokenizer) error {
	if tok.VocabSize() > d.VocabSize() {
		return fmt.Errorf("tokenizer %s has %d ids, the model's vocabulary is %d", tok.Name(), tok.VocabSize(), d.VocabSize())
	}
	if d.Context() < 1 {
		return errors.New("the model's context is empty")
	}
	return nil
}
