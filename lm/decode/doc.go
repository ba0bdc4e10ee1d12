// Package decode runs a trained language model one sequence at a time: it
// draws tokens (Generate), scores given ones (Score), does both in one pass
// (Complete), and turns tokens into text as they come (Text).
//
// The model is a Decoder, the tokenizer a Tokenizer; both are interfaces, so
// that what uses them is tested without a model.
package decode

// Decoder runs a language model over one sequence with a key/value cache. It
// is not safe for concurrent use.
type Decoder interface {
	// Context is the most tokens a sequence may hold.
	Context() int
	// VocabSize is V, the number of logits. It may exceed the tokenizer's.
	VocabSize() int
	// Len is the number of tokens in the cache.
	Len() int
	// Reset forgets all but the first n tokens.
	Reset(n int)
	// Append adds ids and calls each, which may be nil, for every added
	// position i >= from (both count within ids) with the logits [V] of the
	// token after it. The slice is valid during the call only. After an error
	// the cache holds an unknown number of tokens; Reset(0) makes it usable.
	Append(ids []int32, from int, each func(i int, logits []float32) error) error
}

// Tokenizer turns text into token ids and back.
type Tokenizer interface {
	Name() string
	VocabSize() int
	// Separator is the id between documents, -1 where there is none.
	Separator() int32
	// Check returns an error for text that has no tokens, as characters a
	// vocabulary does not know.
	Check(text []byte) error
	// Append adds the ids of text to dst. Special tokens written in text are
	// ordinary text, and what Check refuses is left out.
	Append(dst []int32, text []byte) []int32
	// AppendBytes adds the bytes that ids stand for to dst. Single tokens may
	// end inside a rune.
	AppendBytes(dst []byte, ids ...int32) []byte
}

// Vocabulary is the number of ids that both know: a model's vocabulary is
// often padded, and padding has no text.
func Vocabulary(d Decoder, t Tokenizer) int { return min(d.VocabSize(), t.VocabSize()) }
