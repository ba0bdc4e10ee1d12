package tokens

import (
	"errors"
	"unicode/utf8"
)

// A symbol is a rune, or a byte of invalid UTF-8 as maxSymbol-256+byte.
const (
	firstInvalid = utf8.MaxRune + 1
	maxSymbol    = firstInvalid + 256
)

// symbolAt returns the symbol that text begins with and its bytes.
func symbolAt(text []byte) (symbol rune, size int) {
	r, size := utf8.DecodeRune(text)
	if r == utf8.RuneError && size == 1 {
		return firstInvalid + rune(text[0]), 1
	}
	return r, size
}

// CharSet collects the characters of a corpus. The zero value is empty.
type CharSet struct {
	seen  []uint64 // a bit per symbol
	count int
}

// Add adds the characters of text. Bytes that are not UTF-8 are characters of
// their own. Cut a long text where a char tokenizer would (Cut).
func (s *CharSet) Add(text []byte) {
	if s.seen == nil {
		s.seen = make([]uint64, (maxSymbol+63)/64)
	}
	for len(text) > 0 {
		r, size := rune(text[0]), 1
		if r >= utf8.RuneSelf {
			r, size = symbolAt(text)
		}
		if bit := uint64(1) << (r & 63); s.seen[r>>6]&bit == 0 {
			s.seen[r>>6] |= bit
			s.count++
		}
		text = text[size:]
	}
}

// Len is the number of different characters.
func (s *CharSet) Len() int { return s.count }

// Tokenizer returns the tokenizer of the characters: ids in the order of code
// points, then bytes of invalid UTF-8, then the separator where one is wanted
// (a corpus of a single document needs none). An empty set is an error.
func (s *CharSet) Tokenizer(separator bool) (Tokenizer, error) {
	if s.count == 0 {
		return nil, errors.New("make a char tokenizer: there are no characters")
	}
	t := &charTokenizer{ids: make(map[rune]int32, s.count), separator: -1}
	for i := range t.ascii {
		t.ascii[i] = -1
	}
	for r := range rune(maxSymbol) {
		if s.seen[r>>6]>>(r&63)&1 == 0 {
			continue
		}
		id := int32(len(t.texts))
		t.ids[r] = id
		switch {
		case r >= firstInvalid:
			t.texts = append(t.texts, []byte{byte(r - firstInvalid)})
			t.invalid++
		default:
			t.texts = append(t.texts, utf8.AppendRune(nil, r))
		}
		if r < utf8.RuneSelf {
			t.ascii[r] = id
		}
	}
	if separator {
		t.separator = int32(len(t.texts))
	}
	return t, nil
}

type charTokenizer struct {
	texts     [][]byte // by id, without the separator
	ids       map[rune]int32
	ascii     [utf8.RuneSelf]int32 // -1: none
	invalid   int                  // how many of texts, the last ones, are not UTF-8
	separator int32
}

func (t *charTokenizer) symbols() (characters []string, invalid []int) {
	valid := len(t.texts) - t.invalid
	for _, c := range t.texts[:valid] {
		characters = append(characters, string(c))
	}
	for _, c := range t.texts[valid:] {
		invalid = append(invalid, int(c[0]))
	}
	return characters, invalid
}

func (t *charTokenizer) Name() string     { return CharName }
func (t *charTokenizer) Separator() int32 { return t.separator }

func (t *charTokenizer) VocabSize() int {
	if t.separator >= 0 {
		return len(t.texts) + 1
	}
	return len(t.texts)
}

// at returns the id of the first character, -1 without one, and its bytes.
func (t *charTokenizer) at(text []byte) (id int32, size int) {
	if text[0] < utf8.RuneSelf {
		return t.ascii[text[0]], 1
	}
	r, size := symbolAt(text)
	id, ok := t.ids[r]
	if !ok {
		id = -1
	}
	return id, size
}

func (t *charTokenizer) Append(dst []int32, text []byte) []int32 {
	for len(text) > 0 {
		id, size := t.at(text)
		if id >= 0 {
			dst = append(dst, id)
		}
		text = text[size:]
	}
	return dst
}

func (t *charTokenizer) AppendBytes(dst []byte, ids ...int32) []byte {
	for _, id := range ids {
		if id >= 0 && int(id) < len(t.texts) {
			dst = append(dst, t.texts[id]...)
		}
	}
	return dst
}

func (t *charTokenizer) Len(id int32) int {
	if id >= 0 && int(id) < len(t.texts) {
		return len(t.texts[id])
	}
	return 0
}

func (t *charTokenizer) Check(text []byte) error {
	for at := 0; at < len(text); {
		id, size := t.at(text[at:])
		if id < 0 {
			return &UnknownError{Offset: at, Text: string(text[at : at+size])}
		}
		at += size
	}
	return nil
}

func (t *charTokenizer) Cut(text []byte) int { return CutUTF8(text) }

// CutUTF8 returns the length of text without a character that is begun at its
// end and may go on.
func CutUTF8(text []byte) int {
	for n := 1; n < utf8.UTFMax && n <= len(text); n++ {
		if at := len(text) - n; utf8.RuneStart(text[at]) {
			if !utf8.FullRune(text[at:]) {
				return at
			}
			break
		}
	}
	return len(text)
}
