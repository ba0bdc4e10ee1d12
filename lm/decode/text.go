package decode

import (
	"bytes"
	"unicode/utf8"
)

// Text is text that comes in pieces which may end inside a rune. It gives out
// whole runes (and bytes that belong to none), and ends at stop strings, of
// which not even a beginning is given out. The zero value has none.
type Text struct {
	stops  [][]byte
	buf    []byte // not given out yet
	closed bool
}

// NewText returns a text that ends before the first of the stop strings.
// Empty ones are ignored.
func NewText(stops ...string) *Text {
	t := &Text{}
	for _, s := range stops {
		if s != "" {
			t.stops = append(t.stops, []byte(s))
		}
	}
	return t
}

// Add takes the next bytes and returns those that can be given out, and
// whether a stop string was found. After that it returns nothing.
func (t *Text) Add(b []byte) (out []byte, stopped bool) {
	if t.closed {
		return nil, true
	}
	t.buf = append(t.buf, b...)
	first := -1
	for _, s := range t.stops {
		if i := bytes.Index(t.buf, s); i >= 0 && (first < 0 || i < first) {
			first = i
		}
	}
	if first >= 0 {
		out = bytes.Clone(t.buf[:first])
		t.buf, t.closed = nil, true
		return out, true
	}
	n := min(wholeRunes(t.buf), t.withoutStopBeginning())
	for n > 0 && n < len(t.buf) && insideRune(t.buf, n) { // a stop string may begin inside one
		n--
	}
	out = bytes.Clone(t.buf[:n])
	t.buf = append(t.buf[:0], t.buf[n:]...)
	return out, false
}

// Rest returns what is held back, at the end of the text.
func (t *Text) Rest() []byte {
	rest := t.buf
	t.buf, t.closed = nil, true
	return rest
}

// Pending is the number of bytes held back.
func (t *Text) Pending() int { return len(t.buf) }

// wholeRunes is the length of b without the beginning of a rune at its end.
func wholeRunes(b []byte) int {
	for back := 1; back <= min(utf8.UTFMax-1, len(b)); back++ {
		at := len(b) - back
		if utf8.RuneStart(b[at]) {
			if utf8.FullRune(b[at:]) {
				return len(b)
			}
			return at
		}
	}
	return len(b)
}

// insideRune reports whether b[n:] begins inside a valid rune.
func insideRune(b []byte, n int) bool {
	for back := 1; back < utf8.UTFMax && back <= n; back++ {
		if utf8.RuneStart(b[n-back]) {
			r, size := utf8.DecodeRune(b[n-back:])
			return size > back && (r != utf8.RuneError || size > 1)
		}
	}
	return false
}

// withoutStopBeginning is the length of buf without the longest end that a
// stop string begins with.
func (t *Text) withoutStopBeginning() int {
	keep := len(t.buf)
	for _, s := range t.stops {
		for n := min(len(s)-1, len(t.buf)); n > 0; n-- {
			if bytes.HasSuffix(t.buf, s[:n]) {
				keep = min(keep, len(t.buf)-n)
				break
			}
		}
	}
	return keep
}
