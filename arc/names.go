package arc

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// CheckID refuses what cannot be a task's id: an empty name, bytes that are
// not UTF-8, and characters that move the cursor of a terminal or turn the
// direction of text.
func CheckID(id string) error {
	switch {
	case id == "":
		return fmt.Errorf("has an empty name, expected an id")
	case !utf8.ValidString(id):
		return fmt.Errorf("has a name that is not valid UTF-8, expected UTF-8: rename it")
	}
	if i := strings.IndexFunc(id, unprintable); i >= 0 {
		r, _ := utf8.DecodeRuneInString(id[i:])
		return fmt.Errorf("has the control character %U in its name, expected a name without any: rename it", r)
	}
	return nil
}

func unprintable(r rune) bool {
	return unicode.IsControl(r) || r >= 0x2028 && r <= 0x202e || r >= 0x2066 && r <= 0x2069
}

// Printable is a name as messages show it: in quotes, with escapes, where a
// terminal cannot show it as it is.
func Printable(name string) string {
	if utf8.ValidString(name) && strings.IndexFunc(name, unprintable) < 0 {
		return name
	}
	return strconv.Quote(name)
}
