package serve

import (
	"strconv"
	"unicode/utf16"
)

// halfSurrogate returns where a JSON text escapes half a character (\ud800
// without its other half), -1 for nowhere. encoding/json reads it as U+FFFD,
// which would be another text than was sent.
func halfSurrogate(b []byte) int {
	for at := 0; at < len(b); at++ {
		if b[at] != '\\' {
			continue
		}
		r := escaped(b[at:])
		switch {
		case !utf16.IsSurrogate(r):
			at++ // past what is escaped, which may be a backslash
		case utf16.DecodeRune(r, escaped(b[at+6:])) == '\uFFFD':
			return at
		default:
			at += 11
		}
	}
	return -1
}

// escaped is the value of an escape like \u00e9 at the beginning of b, -1
// where there is none.
func escaped(b []byte) rune {
	if len(b) < 6 || b[0] != '\\' || b[1] != 'u' {
		return -1
	}
	v, err := strconv.ParseUint(string(b[2:6]), 16, 16)
	if err != nil {
		return -1
	}
	return rune(v)
}
