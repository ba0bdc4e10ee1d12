package tokens

import (
	"sync"
	"unicode"
	"unicode/utf8"
)

// The pattern that GPT-2 cuts text into pieces with, before it merges:
//
//	's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
//
// (Radford et al., Language Models are Unsupervised Multitask Learners, 2019,
// and the encoder published with it.) Bytes that are not UTF-8 are in the class
// of neither spaces, letters nor numbers.

// class is what the pattern tells apart.
type class uint8

const (
	other class = iota
	letter
	number
	space
)

// maxPiece bounds the pieces: at so many bytes, or at the end of the character
// there, a longer one is cut and the pattern starts anew. Ordinary text has no
// such pieces; it keeps time and memory linear in the text.
const maxPiece = 1 << 16

func classOf(r rune) class {
	switch {
	case unicode.IsSpace(r):
		return space
	case unicode.IsLetter(r):
		return letter
	case unicode.IsNumber(r):
		return number
	}
	return other
}

// classes are those of the first 65,536 code points.
var classes = sync.OnceValue(func() *[1 << 16]class {
	var t [1 << 16]class
	for r := range t {
		t[r] = classOf(rune(r))
	}
	return &t
})

// splitter cuts text into pieces.
type splitter struct{ classes *[1 << 16]class }

// at returns the class and the size of the character at text[i].
func (s splitter) at(text []byte, i int) (class, int) {
	if b := text[i]; b < utf8.RuneSelf {
		return s.classes[b], 1
	}
	r, size := utf8.DecodeRune(text[i:])
	if r == utf8.RuneError {
		return other, size
	}
	if r < 1<<16 {
		return s.classes[r], size
	}
	return classOf(r), size
}

// next returns the end of the piece that starts at text[i]. It depends on
// text[i:] only.
func (s splitter) next(text []byte, i int) int {
	if text[i] == '\'' {
		if n := contraction(text[i+1:]); n > 0 {
			return i + 1 + n
		}
	}
	limit := min(len(text), i+maxPiece)
	c, size := s.at(text, i)
	j := i + size
	if text[i] == ' ' && j < len(text) {
		if following, n := s.at(text, j); following != space {
			return s.run(text, j+n, limit, following)
		}
	}
	if c != space {
		return s.run(text, j, limit, c)
	}
	last := i // start of the run's last character
	for j < limit {
		c, size := s.at(text, j)
		if c != space {
			if last > i {
				return last // a space before a word belongs to the word
			}
			return j
		}
		last = j
		j += size
	}
	return j
}

// run returns the end of the characters of class c from text[j] on.
func (s splitter) run(text []byte, j, limit int, c class) int {
	for j < limit {
		found, size := s.at(text, j)
		if found != c {
			return j
		}
		j += size
	}
	return j
}

// contraction returns the length of s, t, re, ve, m, ll or d at the start of
// text, 0 without one.
func contraction(text []byte) int {
	if len(text) == 0 {
		return 0
	}
	switch text[0] {
	case 's', 't', 'm', 'd':
		return 1
	case 'r', 'v':
		if len(text) > 1 && text[1] == 'e' {
			return 2
		}
	case 'l':
		if len(text) > 1 && text[1] == 'l' {
			return 2
		}
	}
	return 0
}

// cut returns the end of a piece of text that stays one whatever follows text,
// as near to the end as is found quickly.
func (s splitter) cut(text []byte) int {
	for p := len(text) - 1; p > max(0, len(text)-maxPiece); p-- {
		a, b := text[p-1], text[p]
		if a >= utf8.RuneSelf || b >= utf8.RuneSelf {
			continue
		}
		// No piece goes on from one class to another but after a space or an
		// apostrophe, and what ends a piece of no spaces is its next character.
		if x, y := s.classes[a], s.classes[b]; x != space && x != y && (a != '\'' || y != letter) {
			return p
		}
	}
	i := 0
	for len(text)-i > maxPiece+2*utf8.UTFMax {
		i = s.next(text, i)
	}
	return i
}
