package suite

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// row is a record of a data set, whatever file it came from.
type row map[string]any

// eachRow reads JSON lines, one JSON array of objects, or parquet. number counts
// rows from 1; in JSON lines it is the line.
func eachRow(r io.Reader, name string, visit func(number int, r row) error) error {
	b := bufio.NewReader(r)
	if head, _ := b.Peek(4); string(head) == "PAR1" { // what cannot be read is found below
		return eachParquetRow(b, name, visit)
	}
	array, err := beginsArray(b)
	if err != nil {
		return fmt.Errorf("read %s: %w", name, err)
	}
	if !array {
		return eachLine(b, name, func(line int, text []byte) error {
			var r row
			if err := json.Unmarshal(text, &r); err != nil {
				return &Error{name, line, jsonProblem(err).Error()}
			}
			return visit(line, r)
		})
	}
	d := json.NewDecoder(b)
	if _, err := d.Token(); err != nil {
		return &Error{name, 0, jsonProblem(err).Error()}
	}
	for number := 1; d.More(); number++ {
		var r row
		if err := d.Decode(&r); err != nil {
			return &Error{name, 0, fmt.Sprintf("row %d: %v", number, jsonProblem(err))}
		}
		if err := visit(number, r); err != nil {
			return err
		}
	}
	if _, err := d.Token(); err != nil {
		return &Error{name, 0, "the list does not end: " + jsonProblem(err).Error()}
	}
	return nil
}

// beginsArray looks at the first byte that is not white space.
func beginsArray(b *bufio.Reader) (bool, error) {
	for n := 1; ; n++ {
		head, err := b.Peek(n)
		if len(head) < n {
			if errors.Is(err, io.EOF) || errors.Is(err, bufio.ErrBufferFull) {
				return false, nil
			}
			return false, err
		}
		if c := head[n-1]; !bytes.ContainsRune([]byte(" \t\r\n\xef\xbb\xbf"), rune(c)) {
			return c == '[', nil
		}
	}
}

// text is the string at key.
func (r row) text(key string) (string, error) {
	switch v := r[key].(type) {
	case nil:
		return "", fmt.Errorf("no %q; is this a file of the task?", key)
	case string:
		return v, nil
	case []byte:
		return string(v), nil
	default:
		return "", fmt.Errorf("%q is not a string", key)
	}
}

// texts are the strings at several keys.
func (r row) texts(keys ...string) ([]string, error) {
	var all []string
	for _, key := range keys {
		t, err := r.text(key)
		if err != nil {
			return nil, err
		}
		all = append(all, t)
	}
	return all, nil
}

// list is the list of strings at key.
func (r row) list(key string) ([]string, error) {
	if all, ok := r[key].([]string); ok {
		return all, nil
	}
	values, ok := r[key].([]any)
	if !ok {
		return nil, fmt.Errorf("no list of strings %q; is this a file of the task?", key)
	}
	var all []string
	for i, v := range values {
		t, ok := v.(string)
		if !ok {
			return nil, fmt.Errorf("%q: entry %d is not a string", key, i)
		}
		all = append(all, t)
	}
	return all, nil
}

// sub is the object at key.
func (r row) sub(key string) (row, bool) {
	switch v := r[key].(type) {
	case map[string]any:
		return v, true
	case row:
		return v, true
	}
	return nil, false
}

// answer is the number at key, which may be written as a string. Test splits
// of many tasks are published without answers.
func (r row) answer(key string) (int, error) {
	var text string
	switch v := r[key].(type) {
	case nil:
		return 0, fmt.Errorf("no answer %q; convert a split with answers, or name the file that holds them with --labels", key)
	case string:
		text = strings.TrimSpace(v)
	case float64:
		text = fmt.Sprint(v)
	case int, int32, int64:
		text = fmt.Sprint(v)
	default:
		return 0, fmt.Errorf("%q is not a number", key)
	}
	if text == "" || text == "-1" {
		return 0, fmt.Errorf("the answer %q is %q: this split is published without answers; convert another", key, text)
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		return 0, fmt.Errorf("%q is %q, expected a number", key, text)
	}
	return n, nil
}
