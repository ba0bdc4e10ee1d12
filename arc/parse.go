package arc

import (
	"bytes"
	"fmt"
)

// parser turns the text of one file into tasks and notes what it ignores.
type parser struct {
	cursor
	file  string
	notes *notes
}

// place locates a problem in the file; see Error.
type place struct {
	task, section string
	index         int
	part          string
}

func (p *parser) fail(at place, row int, err error) error {
	if e, ok := err.(*Error); ok {
		return e
	}
	return &Error{File: p.file, Task: at.task, Section: at.section, Index: at.index, Part: at.part, Row: row, Problem: err.Error()}
}

// checkText refuses what is plainly not UTF-8 JSON with a message of its own.
func checkText(file string, data []byte) error {
	switch {
	case len(bytes.TrimSpace(data)) == 0:
		return fileErrorf(file, "is empty, expected a JSON object with \"train\" and \"test\"")
	case bytes.HasPrefix(data, []byte{0xEF, 0xBB, 0xBF}):
		return fileErrorf(file, "starts with a byte order mark (EF BB BF), expected plain UTF-8; save it without one")
	case bytes.HasPrefix(data, []byte{0xFF, 0xFE}), bytes.HasPrefix(data, []byte{0xFE, 0xFF}):
		return fileErrorf(file, "is UTF-16, expected UTF-8; save it as UTF-8")
	}
	return nil
}

// fileContent is what one file holds: one task, or the tasks of a combined
// file in key order.
type fileContent struct {
	tasks    []Task
	combined bool
}

// parseFile reads a task file or a combined file, told apart by content. The
// id of a single task is stem.
func parseFile(file, stem string, data []byte, n *notes) (fileContent, error) {
	if err := checkText(file, data); err != nil {
		return fileContent{}, err
	}
	p := &parser{cursor: cursor{data: data}, file: file, notes: n}
	if p.peek() == '[' {
		return fileContent{}, fileErrorf(file, "holds an array, expected an object with \"train\" and \"test\" (a bare list of pairs or grids is not a task)")
	}
	task, members, err := p.task(place{index: -1}, stem, 1)
	if err != nil {
		return fileContent{}, err
	}
	if err := p.end(); err != nil {
		return fileContent{}, p.fail(place{index: -1}, -1, err)
	}
	if members == nil {
		return fileContent{tasks: []Task{task}}, nil
	}
	tasks := make([]Task, 0, len(members))
	for _, m := range members {
		if m.key == "" {
			return fileContent{}, fileErrorf(file, "has a task with an empty name, expected an id")
		}
		if err := CheckID(m.key); err != nil {
			return fileContent{}, p.fail(place{task: m.key, index: -1}, -1, err)
		}
		p.pos = m.pos
		task, inner, err := p.task(place{task: m.key, index: -1}, m.key, 2)
		if err != nil {
			return fileContent{}, err
		}
		if inner != nil {
			return fileContent{}, p.fail(place{task: m.key, index: -1}, -1, missingSections(inner))
		}
		tasks = append(tasks, task)
	}
	return fileContent{tasks: tasks, combined: true}, nil
}

// member is a key of an object with the position and kind of its value.
type member struct {
	key  string
	pos  int
	kind byte
}

// missingSections says which keys an object has instead of train and test.
func missingSections(members []member) error {
	keys, arrays := "", 0
	for _, m := range members {
		if m.kind == '[' {
			arrays++
		}
	}
	if arrays > 0 && arrays == len(members) {
		return fmt.Errorf("has an array for each of its %d keys, as a solutions file; expected tasks: name the challenges file instead, its solutions are found beside it", arrays)
	}
	for i, m := range members {
		if i == 4 {
			keys += ", ..."
			break
		}
		if i > 0 {
			keys += ", "
		}
		keys += fmt.Sprintf("%.40q", m.key)
	}
	if keys == "" {
		keys = "none"
	}
	return fmt.Errorf("has neither \"train\" nor \"test\" (keys found: %s), expected both", keys)
}

// task reads one task object. An object of objects without train and test, as
// in a combined file, comes back as its members instead.
func (p *parser) task(at place, id string, depth int) (Task, []member, error) {
	t := Task{ID: id, File: p.file}
	var members []member
	var sections []string
	err := p.object("an object with \"train\" and \"test\"", func(key string) error {
		switch key {
		case "train", "test":
			sections = append(sections, key)
			pairs, err := p.pairs(place{task: at.task, section: key, index: -1})
			if key == "train" {
				t.Train = pairs
			} else {
				t.Test = pairs
			}
			return err
		}
		kind := p.peek()
		members = append(members, member{key: key, pos: p.pos, kind: kind})
		return p.skip(depth)
	})
	if err != nil {
		return t, nil, p.fail(at, -1, err)
	}
	switch len(sections) {
	case 0:
		for _, m := range members {
			if m.kind != '{' {
				return t, nil, p.fail(at, -1, missingSections(members))
			}
		}
		if len(members) == 0 {
			return t, nil, p.fail(at, -1, missingSections(nil))
		}
		return t, members, nil
	case 1:
		other := "train"
		if sections[0] == "train" {
			other = "test"
		}
		return t, nil, p.fail(at, -1, fmt.Errorf("has %q but no %q, expected both", sections[0], other))
	}
	t.TestFirst = sections[0] == "test"
	for _, m := range members {
		p.extraKey(m, t)
	}
	return t, nil, nil
}

// extraKey notes a key beside train and test. The name that some files carry
// is silent when it repeats the id.
func (p *parser) extraKey(m member, t Task) {
	if m.key == "name" && m.kind == '"' {
		probe := cursor{data: p.data, pos: m.pos}
		if name, err := probe.str(); err == nil {
			if name != t.ID {
				p.notes.otherName(t, name)
			}
			return
		}
	}
	p.notes.ignoredKey(m.key, t.File)
}

// pairs reads a section.
func (p *parser) pairs(at place) ([]Pair, error) {
	var pairs []Pair
	err := p.array("an array of pairs", func(i int) error {
		at.index = i
		pair, err := p.pair(at)
		pairs = append(pairs, pair)
		return err
	})
	at.index = -1
	if err == nil && len(pairs) == 0 {
		err = fmt.Errorf("is empty, expected at least one pair")
	}
	if err != nil {
		if len(pairs) > 0 {
			at.index = len(pairs) - 1
		}
		return nil, p.fail(at, -1, err)
	}
	return pairs, nil
}

// pair reads one pair. A test pair may lack its output or have null there.
func (p *parser) pair(at place) (Pair, error) {
	var pair Pair
	var in, out bool
	err := p.object("an object with \"input\" and \"output\"", func(key string) error {
		here := at
		here.part = key
		var err error
		switch key {
		case "input":
			in = true
			pair.Input, err = p.grid(here)
		case "output":
			if at.section == "test" && p.null() {
				return nil
			}
			out = true
			pair.Output, err = p.grid(here)
		default:
			p.notes.ignoredKey(at.section+"[]."+key, p.file)
			err = p.skip(4)
		}
		return err
	})
	if err == nil && !in {
		err = fmt.Errorf("has no \"input\", expected one")
	}
	if err == nil && !out && at.section == "train" {
		err = fmt.Errorf("has no \"output\", expected one (only test pairs may lack it)")
	}
	if err != nil {
		return pair, p.fail(at, -1, err)
	}
	return pair, nil
}

// grid reads rows of colours.
func (p *parser) grid(at place) (Grid, error) {
	var g Grid
	row := -1
	err := p.array("a grid: an array of rows", func(r int) error {
		row = r
		n := 0
		err := p.array("an array of colours", func(col int) error {
			v, err := p.color()
			if err != nil {
				return fmt.Errorf("column %d: %w", col, err)
			}
			if n++; n <= MaxSide && r < MaxSide {
				g.Cells = append(g.Cells, v)
			}
			return nil
		})
		switch {
		case err != nil:
			return err
		case r == 0 && n == 0:
			return fmt.Errorf("is empty, expected 1 to %d cells", MaxSide)
		case r == 0 && n > MaxSide:
			return fmt.Errorf("has %d cells, expected 1 to %d", n, MaxSide)
		case r == 0:
			g.Cols = n
		case n != g.Cols:
			return fmt.Errorf("has %d %s, expected %d as in row 0", n, plural(n, "cell", "cells"), g.Cols)
		}
		return nil
	})
	g.Rows = row + 1
	switch {
	case err != nil:
		return Grid{}, p.fail(at, row, err)
	case g.Rows == 0:
		return Grid{}, p.fail(at, -1, fmt.Errorf("is an empty grid, expected 1 to %d rows", MaxSide))
	case g.Rows > MaxSide:
		return Grid{}, p.fail(at, -1, fmt.Errorf("has %d rows, expected 1 to %d", g.Rows, MaxSide))
	}
	return g, nil
}

// color reads one cell.
func (p *parser) color() (uint8, error) {
	token := p.token()
	if len(token) == 1 && token[0] >= '0' && token[0] <= '9' {
		p.pos++
		return token[0] - '0', nil
	}
	return 0, p.unexpected("a whole number from 0 to 9")
}

func plural(n int, one, many string) string {
	if n == 1 {
		return one
	}
	return many
}
