package suite

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode"
	"unicode/utf8"

	"deeploop/internal/wording"
)

// Item is one question.
type Item struct {
	Context  string   `json:"context,omitempty"`
	Contexts []string `json:"contexts,omitempty"` // one per choice, instead of Context
	Choices  []string `json:"choices"`
	Gold     int      `json:"gold"` // index of the right choice
	// Delimiter comes between context and choice; nil is a space where it takes
	// one.
	Delimiter *string `json:"delimiter,omitempty"`
}

// check says what is wrong with an item.
func (it Item) check() error {
	switch {
	case len(it.Choices) < 2:
		return fmt.Errorf("%s, expected at least 2", wording.Count(len(it.Choices), "choice"))
	case it.Gold < 0 || it.Gold >= len(it.Choices):
		return fmt.Errorf("gold is %d, expected 0 to %d", it.Gold, len(it.Choices)-1)
	case it.Contexts != nil && it.Context != "":
		return errors.New("both context and contexts, expected one of them")
	case it.Contexts != nil && len(it.Contexts) != len(it.Choices):
		return fmt.Errorf("%d contexts for %d choices", len(it.Contexts), len(it.Choices))
	}
	for i, choice := range it.Choices {
		if choice == "" {
			return fmt.Errorf("choice %d is empty", i)
		}
	}
	return nil
}

// context is the context of choice i.
func (it Item) context(i int) string {
	if it.Contexts != nil {
		return it.Contexts[i]
	}
	return it.Context
}

// text is the context of choice i, and the choice with its delimiter.
func (it Item) text(i int) (context, choice string) {
	context, choice = it.context(i), it.Choices[i]
	if it.Delimiter != nil {
		return context, *it.Delimiter + choice
	}
	last, _ := utf8.DecodeLastRuneInString(context)
	first, _ := utf8.DecodeRuneInString(choice)
	if context == "" || choice == "" || unicode.IsSpace(last) || unicode.IsSpace(first) {
		return context, choice
	}
	return context, " " + choice
}

// maxLine bounds the length of a line in bytes.
const maxLine = 8 << 20

// Read reads a suite; name is for errors, which are *Error. Empty lines are
// skipped.
func Read(r io.Reader, name string) ([]Item, error) {
	var items []Item
	err := eachLine(r, name, func(line int, text []byte) error {
		it, err := parseItem(text)
		if err == nil {
			err = it.check()
		}
		if err != nil {
			return &Error{name, line, err.Error()}
		}
		items = append(items, it)
		return nil
	})
	if err == nil && len(items) == 0 {
		err = &Error{name, 0, "no items, expected a line of JSON for each"}
	}
	if err != nil {
		return nil, err
	}
	return items, nil
}

func parseItem(text []byte) (Item, error) {
	var raw struct {
		Item
		Context *string `json:"context"`
		Gold    *int    `json:"gold"`
	}
	if err := json.Unmarshal(text, &raw); err != nil {
		return Item{}, jsonProblem(err)
	}
	switch {
	case raw.Context == nil && raw.Contexts == nil:
		return Item{}, errors.New(`no "context"`)
	case raw.Choices == nil:
		return Item{}, errors.New(`no "choices"`)
	case raw.Gold == nil:
		return Item{}, errors.New(`no "gold", the index of the right choice from 0`)
	}
	it := raw.Item
	it.Gold = *raw.Gold
	if raw.Context != nil {
		it.Context = *raw.Context
	}
	return it, nil
}

// jsonProblem words an error of encoding/json.
func jsonProblem(err error) error {
	var kind *json.UnmarshalTypeError
	if errors.As(err, &kind) {
		if kind.Field == "" {
			return fmt.Errorf("a JSON %s, expected an object", kind.Value)
		}
		field := kind.Field[strings.LastIndexByte(kind.Field, '.')+1:]
		return fmt.Errorf("%q is a JSON %s, expected %s", field, kind.Value, jsonWants(kind.Type.String()))
	}
	return fmt.Errorf("not valid JSON: %w", err)
}

func jsonWants(goType string) string {
	switch {
	case strings.HasPrefix(goType, "[]"):
		return "a list of strings"
	case strings.Contains(goType, "int"):
		return "a whole number"
	}
	return "a string"
}

// eachLine calls visit for every line that is not empty.
func eachLine(r io.Reader, name string, visit func(line int, text []byte) error) error {
	s := bufio.NewScanner(r)
	s.Buffer(nil, maxLine)
	line := 0
	for s.Scan() {
		line++
		text := bytes.TrimSpace(s.Bytes())
		if line == 1 {
			text = bytes.TrimPrefix(text, []byte("\ufeff"))
		}
		if len(text) == 0 {
			continue
		}
		if err := visit(line, text); err != nil {
			return err
		}
	}
	if errors.Is(s.Err(), bufio.ErrTooLong) {
		return &Error{name, line + 1, fmt.Sprintf("longer than %d MiB", maxLine>>20)}
	}
	if s.Err() != nil {
		return fmt.Errorf("read %s: %w", name, s.Err())
	}
	return nil
}

// Write writes items as Read reads them.
func Write(w io.Writer, items []Item) error {
	b := bufio.NewWriter(w)
	e := json.NewEncoder(b)
	e.SetEscapeHTML(false)
	for _, it := range items {
		if err := e.Encode(it); err != nil {
			return err
		}
	}
	return b.Flush()
}
