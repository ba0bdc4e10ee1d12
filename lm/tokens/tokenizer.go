package tokens

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// Tokenizer turns text into tokens and back. Its methods may run at the same
// time.
type Tokenizer interface {
	// Name is the kind: byte, char or gpt2.
	Name() string
	// VocabSize is the number of ids, the separator included; ids count from 0.
	VocabSize() int
	// Separator is the id that stands before each document of a corpus of
	// several, -1 where there is none.
	Separator() int32
	// Append appends the tokens of text to dst. Characters that a char
	// tokenizer does not know are left out; Check finds them.
	Append(dst []int32, text []byte) []int32
	// AppendBytes appends the text of tokens to dst: none for the separator
	// and for ids outside the vocabulary.
	AppendBytes(dst []byte, ids ...int32) []byte
	// Len is the number of bytes of a token, 0 where AppendBytes appends none.
	Len(id int32) int
	// Check returns an *UnknownError for the first character of text that has
	// no token.
	Check(text []byte) error
	// Cut returns how much of text can be tokenized now where more may follow:
	// the tokens of text[:Cut] and of the rest, however it goes on, are those
	// of the whole. text begins where a document or the previous cut is. It
	// may be 0 for texts shorter than MinCut.
	Cut(text []byte) int
}

// MinCut bytes of text always have a cut that is not 0.
const MinCut = 2 * maxPiece

// Names of the kinds of tokenizer.
const (
	ByteName = "byte"
	CharName = "char"
	GPT2Name = "gpt2"
)

// UnknownError is a character without a token.
type UnknownError struct {
	Offset int    // in bytes
	Text   string // the character
}

func (e *UnknownError) Error() string {
	return fmt.Sprintf("character %q at byte %d is not in the vocabulary, which holds the characters of the training text only", e.Text, e.Offset)
}

// BadInput tells the command line that the text is at fault.
func (e *UnknownError) BadInput() bool { return true }

// saved is a tokenizer as JSON.
type saved struct {
	Tokenizer string `json:"tokenizer"`
	VocabSize int    `json:"vocab_size"`
	Separator int32  `json:"separator"` // -1: none
	// Characters by id, those of invalid UTF-8 left out. char only.
	Characters []string `json:"characters,omitempty"`
	// InvalidBytes have the ids after the characters. char only.
	InvalidBytes []int `json:"invalid_bytes,omitempty"`
	// SHA256 of the vocabulary. gpt2 only.
	SHA256 string `json:"sha256,omitempty"`
}

// Save writes a tokenizer as JSON that Load reads, the same bytes each time.
func Save(w io.Writer, t Tokenizer) error {
	s := saved{Tokenizer: t.Name(), VocabSize: t.VocabSize(), Separator: t.Separator()}
	switch t := t.(type) {
	case *charTokenizer:
		s.Characters, s.InvalidBytes = t.symbols()
	case *gpt2Tokenizer:
		s.SHA256 = t.sha256
	}
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", " ")
	return e.Encode(s)
}

// Load reads what Save wrote.
func Load(r io.Reader) (Tokenizer, error) {
	var s saved
	if err := json.NewDecoder(r).Decode(&s); err != nil {
		return nil, fmt.Errorf("read tokenizer: %w", err)
	}
	var t Tokenizer
	switch s.Tokenizer {
	case ByteName:
		t = Byte()
	case GPT2Name:
		g := gpt2()
		if s.SHA256 != g.sha256 {
			return nil, fmt.Errorf("read tokenizer: the gpt2 vocabulary has SHA-256 %.12s, this program's has %.12s", s.SHA256, g.sha256)
		}
		t = g
	case CharName:
		var set CharSet
		for i, c := range s.Characters {
			before := set.Len()
			set.Add([]byte(c))
			if set.Len() != before+1 {
				return nil, fmt.Errorf("read tokenizer: character %d is %q, expected a single one that is not there before", i, c)
			}
		}
		for _, b := range s.InvalidBytes {
			if b < 0x80 || b > 0xff {
				return nil, fmt.Errorf("read tokenizer: invalid_bytes holds %d, expected 128 to 255", b)
			}
			set.Add([]byte{byte(b)})
		}
		var err error
		if t, err = set.Tokenizer(s.Separator >= 0); err != nil {
			return nil, fmt.Errorf("read tokenizer: %w", err)
		}
		chars, _ := t.(*charTokenizer).symbols()
		for i, c := range s.Characters {
			if i >= len(chars) || chars[i] != c {
				return nil, fmt.Errorf("read tokenizer: character %d is %q, expected characters in ascending order", i, c)
			}
		}
	case "":
		return nil, errors.New("read tokenizer: its kind (tokenizer) is missing, expected byte, char or gpt2")
	default:
		return nil, fmt.Errorf("read tokenizer: it is %q, expected byte, char or gpt2", s.Tokenizer)
	}
	if s.VocabSize != t.VocabSize() || s.Separator != t.Separator() {
		return nil, fmt.Errorf("read tokenizer: %s has vocab_size %d and separator %d, expected %d and %d",
			s.Tokenizer, s.VocabSize, s.Separator, t.VocabSize(), t.Separator())
	}
	return t, nil
}
