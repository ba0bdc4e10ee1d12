package arc

import (
	"bytes"
	"encoding/json"
	"fmt"
	"unicode/utf8"
)

// maxDepth bounds how deep values may nest; ARC needs 6.
const maxDepth = 64

// cursor reads JSON text from left to right. It exists beside encoding/json
// because the order of keys matters to the reference builder, a repeated key
// must be an error, and messages must name the place inside a task. Its
// methods return problems as plain errors; the caller adds the place.
type cursor struct {
	data []byte
	pos  int
}

// line returns "line 3, column 14" of a position, both counted from 1.
func (c *cursor) line(pos int) string {
	pos = min(pos, len(c.data))
	before := c.data[:pos]
	start := bytes.LastIndexByte(before, '\n') + 1
	return fmt.Sprintf("line %d, column %d", bytes.Count(before, []byte{'\n'})+1, utf8.RuneCount(before[start:])+1)
}

// space skips white space.
func (c *cursor) space() {
	for c.pos < len(c.data) {
		switch c.data[c.pos] {
		case ' ', '\t', '\n', '\r':
			c.pos++
		default:
			return
		}
	}
}

// peek returns the next byte that is not white space, 0 at the end.
func (c *cursor) peek() byte {
	c.space()
	if c.pos >= len(c.data) {
		return 0
	}
	return c.data[c.pos]
}

// unexpected describes what is found at the cursor instead of what.
func (c *cursor) unexpected(what string) error {
	if c.peek() == 0 && c.pos >= len(c.data) {
		return fmt.Errorf("the file ends at %s (cut short?), expected %s", c.line(c.pos), what)
	}
	return fmt.Errorf("found %s at %s, expected %s", c.describe(), c.line(c.pos), what)
}

// describe names the value at the cursor in a few words.
func (c *cursor) describe() string {
	switch c.peek() {
	case '{':
		return "an object"
	case '[':
		return "an array"
	case '"':
		start := c.pos
		probe := cursor{data: c.data, pos: start}
		if _, err := probe.str(); err == nil && probe.pos-start <= 40 {
			return "the text " + string(c.data[start:probe.pos])
		}
		return "a text"
	}
	end := c.pos
	for end < len(c.data) && end-c.pos < 24 && !bytes.ContainsRune([]byte(" \t\r\n,:[]{}\""), rune(c.data[end])) {
		end++
	}
	if end == c.pos { // a lone punctuation mark
		end++
	}
	return fmt.Sprintf("%.40q", c.data[c.pos:end])
}

// next consumes b, or says what was expected.
func (c *cursor) next(b byte, what string) error {
	if c.peek() != b {
		return c.unexpected(what)
	}
	c.pos++
	return nil
}

// str reads a string.
func (c *cursor) str() (string, error) {
	if c.peek() != '"' {
		return "", c.unexpected("a text in double quotes")
	}
	start, escaped := c.pos, false
	for i := start + 1; i < len(c.data); i++ {
		switch b := c.data[i]; {
		case b == '\\':
			escaped = true
			i++
		case b == '"':
			c.pos = i + 1
			raw := c.data[start:c.pos]
			if !utf8.Valid(raw) {
				c.pos = start
				return "", fmt.Errorf("found bytes that are not UTF-8 in the text at %s, expected UTF-8", c.line(start))
			}
			if !escaped {
				return string(raw[1 : len(raw)-1]), nil
			}
			var s string
			if err := json.Unmarshal(raw, &s); err != nil {
				c.pos = start
				return "", fmt.Errorf("found a text with a bad escape at %s, expected JSON", c.line(start))
			}
			return s, nil
		case b < ' ':
			return "", fmt.Errorf("found a control character inside a text at %s, expected the closing quote", c.line(i))
		}
	}
	return "", fmt.Errorf("the file ends inside the text that starts at %s (cut short?)", c.line(start))
}

// object reads an object and calls member, with the cursor before the value,
// for each key in order. A repeated key is an error.
func (c *cursor) object(what string, member func(key string) error) error {
	if err := c.next('{', what); err != nil {
		return err
	}
	if c.peek() == '}' {
		c.pos++
		return nil
	}
	seen := make(map[string]struct{}, 4)
	for {
		at := c.pos
		key, err := c.str()
		if err != nil {
			return err
		}
		if _, twice := seen[key]; twice {
			return fmt.Errorf("has the key %q twice (again at %s), expected it once", key, c.line(at))
		}
		seen[key] = struct{}{}
		if err := c.next(':', fmt.Sprintf("a colon after the key %q", key)); err != nil {
			return err
		}
		if err := member(key); err != nil {
			return err
		}
		if c.peek() == '}' {
			c.pos++
			return nil
		}
		if err := c.next(',', "a comma or a closing brace"); err != nil {
			return err
		}
		c.space()
	}
}

// array reads an array and calls element, with the cursor before the value,
// for each position.
func (c *cursor) array(what string, element func(i int) error) error {
	if err := c.next('[', what); err != nil {
		return err
	}
	if c.peek() == ']' {
		c.pos++
		return nil
	}
	for i := 0; ; i++ {
		if err := element(i); err != nil {
			return err
		}
		if c.peek() == ']' {
			c.pos++
			return nil
		}
		if err := c.next(',', "a comma or a closing bracket"); err != nil {
			return err
		}
	}
}

// skip reads over any value, checking that it is JSON.
func (c *cursor) skip(depth int) error {
	if depth > maxDepth {
		return fmt.Errorf("nests deeper than %d values at %s, expected a task", maxDepth, c.line(c.pos))
	}
	switch c.peek() {
	case '{':
		return c.object("an object", func(string) error { return c.skip(depth + 1) })
	case '[':
		return c.array("an array", func(int) error { return c.skip(depth + 1) })
	case '"':
		_, err := c.str()
		return err
	}
	token := c.token()
	if len(token) == 0 || !json.Valid(token) {
		return c.unexpected("a JSON value")
	}
	c.pos += len(token)
	return nil
}

// token returns the number, true, false or null at the cursor, not consumed.
func (c *cursor) token() []byte {
	c.space()
	end := c.pos
	for end < len(c.data) {
		switch b := c.data[end]; {
		case b >= '0' && b <= '9', b >= 'a' && b <= 'z', b >= 'A' && b <= 'Z', b == '-', b == '+', b == '.':
			end++
			continue
		}
		break
	}
	return c.data[c.pos:end]
}

// null consumes the value null if it is next.
func (c *cursor) null() bool {
	if string(c.token()) != "null" {
		return false
	}
	c.pos += len("null")
	return true
}

// end checks that nothing follows.
func (c *cursor) end() error {
	if c.peek() != 0 || c.pos < len(c.data) {
		return c.unexpected("the end of the file")
	}
	return nil
}
