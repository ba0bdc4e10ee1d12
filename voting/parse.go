package voting

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"deeploop/arc"
)

// ParseSubmission reads a submission. Anything that is no grid of 1x1 to
// 30x30 colours is an *Error that names task, test input and attempt, for all
// of them at once. An attempt that is null, [] or [[]], or left out, was not
// made: an empty grid.
func ParseSubmission(data []byte) (Submission, error) {
	var s Submission
	var problems []error
	note := func(format string, args ...any) { problems = append(problems, fmt.Errorf(format, args...)) }
	err := eachMember(data, `an object with a list of answers for each task`, func(id string, raw json.RawMessage) {
		t := TaskAnswers{ID: id}
		var tests []json.RawMessage
		if err := json.Unmarshal(raw, &tests); err != nil || tests == nil {
			note("task %q: found %s, expected a list with one object per test input", id, clip(raw))
			return
		}
		for i, test := range tests {
			grids, err := parseAttempts(test)
			for _, e := range err {
				note("task %q: test[%d]%w", id, i, e)
			}
			t.Tests = append(t.Tests, grids)
		}
		s = append(s, t)
	})
	if err != nil {
		return nil, &Error{err}
	}
	if err := join(problems); err != nil {
		return nil, err
	}
	return s, nil
}

// parseAttempts reads {"attempt_1": grid, ...}; attempts are placed by number.
func parseAttempts(raw json.RawMessage) (grids []arc.Grid, problems []error) {
	err := eachMember(raw, `an object {"attempt_1": grid, "attempt_2": grid}`, func(key string, value json.RawMessage) {
		digits, ok := strings.CutPrefix(key, "attempt_")
		n, err := strconv.Atoi(digits)
		if !ok || err != nil || n < 1 || n > maxAttempts || strconv.Itoa(n) != digits {
			problems = append(problems, fmt.Errorf(": unknown key %q, expected attempt_1, attempt_2", key))
			return
		}
		g, err := parseGrid(value)
		if err != nil {
			problems = append(problems, fmt.Errorf(".%s%w", key, err))
		}
		for len(grids) < n {
			grids = append(grids, arc.Grid{})
		}
		grids[n-1] = g
	})
	if err != nil {
		problems = append(problems, fmt.Errorf(": %w", err))
	}
	return grids, problems
}

// maxAttempts bounds the attempt numbers a submission may use.
const maxAttempts = 1000

// ParseSolutions reads the right answers as Kaggle publishes them,
// {"TASK": [grid, ...], ...}, as tasks without inputs.
func ParseSolutions(data []byte) ([]arc.Task, error) {
	var tasks []arc.Task
	var problems []error
	err := eachMember(data, `an object with a list of grids for each task`, func(id string, raw json.RawMessage) {
		t := arc.Task{ID: id}
		if err := arc.CheckID(id); err != nil {
			problems = append(problems, fmt.Errorf("task %q: %w", id, err))
			return
		}
		var outputs []json.RawMessage
		if err := json.Unmarshal(raw, &outputs); err != nil || len(outputs) == 0 {
			problems = append(problems, fmt.Errorf("task %q: found %s, expected a list of grids", id, clip(raw)))
			return
		}
		for i, out := range outputs {
			g, err := parseGrid(out)
			if err == nil && g.Empty() {
				err = errors.New(" is empty, expected a grid")
			}
			if err != nil {
				problems = append(problems, fmt.Errorf("task %q: solution[%d]%w", id, i, err))
			}
			t.Test = append(t.Test, arc.Pair{Output: g})
		}
		tasks = append(tasks, t)
	})
	if err != nil {
		return nil, &Error{err}
	}
	if err := join(problems); err != nil {
		return nil, err
	}
	return tasks, nil
}

// parseGrid reads nested arrays of colours; null, [] and [[]] give an empty
// grid. Errors start with a blank or a place, to follow the name of the grid.
func parseGrid(raw json.RawMessage) (arc.Grid, error) {
	var rows []json.RawMessage
	if err := json.Unmarshal(raw, &rows); err != nil {
		return arc.Grid{}, fmt.Errorf(" is %s, expected a grid, [[0, 1], ...]", clip(raw))
	}
	var g arc.Grid
	for r, rawRow := range rows {
		var cells []json.RawMessage
		if err := json.Unmarshal(rawRow, &cells); err != nil || cells == nil {
			return arc.Grid{}, fmt.Errorf(" row %d is %s, expected a list of colours 0 to 9", r, clip(rawRow))
		}
		switch {
		case r == 0:
			g.Cols = len(cells)
		case len(cells) != g.Cols:
			return arc.Grid{}, fmt.Errorf(" row %d has %d cells, expected %d as in row 0", r, len(cells), g.Cols)
		}
		for c, cell := range cells {
			if len(cell) != 1 || cell[0] < '0' || cell[0] > '9' {
				return arc.Grid{}, fmt.Errorf(" row %d cell %d is %s, expected a colour 0 to 9", r, c, clip(cell))
			}
			g.Cells = append(g.Cells, cell[0]-'0')
		}
		g.Rows++
	}
	switch {
	case g.Rows > arc.MaxSide || g.Cols > arc.MaxSide:
		return arc.Grid{}, fmt.Errorf(" is %dx%d, expected at most %dx%d", g.Rows, g.Cols, arc.MaxSide, arc.MaxSide)
	case g.Cols == 0 && g.Rows > 1:
		return arc.Grid{}, fmt.Errorf(" has %d rows without a cell, expected a grid", g.Rows)
	case g.Cols == 0:
		return arc.Grid{}, nil
	}
	return g, nil
}

// eachMember walks a JSON object in the order of its keys.
func eachMember(data []byte, want string, visit func(key string, value json.RawMessage)) error {
	dec := json.NewDecoder(bytes.NewReader(bytes.TrimPrefix(data, []byte("\xef\xbb\xbf"))))
	tok, err := dec.Token()
	if err != nil || tok != json.Delim('{') {
		return fmt.Errorf("found %s, expected %s", clip(data), want)
	}
	known := map[string]bool{}
	for dec.More() {
		tok, err := dec.Token()
		if err != nil {
			return fmt.Errorf("not valid JSON: %w", err)
		}
		key, ok := tok.(string)
		if !ok {
			return fmt.Errorf("found %v, expected a key", tok)
		}
		if known[key] {
			return fmt.Errorf("key %q occurs twice", key)
		}
		known[key] = true
		var value json.RawMessage
		if err := dec.Decode(&value); err != nil {
			return fmt.Errorf("not valid JSON in %q: %w", key, err)
		}
		visit(key, value)
	}
	if _, err := dec.Token(); err != nil {
		return fmt.Errorf("not valid JSON: cut short after %d keys: %w", len(known), err)
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return errors.New("there is text behind the object, expected its end")
	}
	return nil
}

// clip shortens JSON text for a message.
func clip(raw []byte) string {
	text := strings.Join(strings.Fields(string(raw[:min(len(raw), 400)])), " ")
	if text == "" {
		return "nothing"
	}
	if runes := []rune(text); len(runes) > 40 {
		return string(runes[:40]) + "..."
	}
	return text
}
