package main

import (
	"fmt"

	"deeploop/arc"
)

// maxSide is the largest side of a sample grid.
const maxSide = 10

// check reports why a task does not show its rule well: a pair against the
// rule, equal inputs, nothing to see, a test that the demonstrations leave
// open, or another rule of the catalog that explains them but not the test.
func (s *sample) check(t *arc.Task, all []sample) error {
	if len(t.Train) != s.demos || len(t.Test) != s.tests {
		return fmt.Errorf("has %d and %d pairs, the catalog says %d and %d", len(t.Train), len(t.Test), s.demos, s.tests)
	}
	pairs := append(append([]arc.Pair(nil), t.Train...), t.Test...)
	for i, p := range pairs {
		for _, g := range []arc.Grid{p.Input, p.Output} {
			if g.Empty() || g.Rows > maxSide || g.Cols > maxSide {
				return fmt.Errorf("pair %d has a grid of %dx%d, expected 1 to %d", i, g.Rows, g.Cols, maxSide)
			}
		}
		if !s.apply(p.Input).Equal(p.Output) {
			return fmt.Errorf("pair %d is against the rule", i)
		}
		if n := count(p.Output); n[0] == len(p.Output.Cells) {
			return fmt.Errorf("pair %d has a black output", i)
		}
		if p.Input.Equal(p.Output) {
			return fmt.Errorf("pair %d changes nothing", i)
		}
		for _, q := range pairs[:i] {
			if q.Input.Equal(p.Input) {
				return fmt.Errorf("pair %d repeats an input", i)
			}
		}
	}
	same := true
	for _, p := range t.Train[1:] {
		same = same && p.Output.Equal(t.Train[0].Output)
	}
	if same {
		return fmt.Errorf("all demonstrations have one output")
	}
	var demoIn, demoOut [arc.NumColors]bool
	for _, p := range t.Train {
		mark(&demoIn, p.Input)
		mark(&demoOut, p.Output)
	}
	for i, p := range t.Test {
		var in, out [arc.NumColors]bool
		mark(&in, p.Input)
		mark(&out, p.Output)
		for c := range out {
			if in[c] && !demoIn[c] {
				return fmt.Errorf("test %d shows colour %d, no demonstration does", i, c)
			}
			if out[c] && !in[c] && !demoOut[c] {
				return fmt.Errorf("test %d needs colour %d, no demonstration shows it", i, c)
			}
		}
	}
	for i := range all {
		if rival := &all[i]; rival.explains(t.Train) && !rival.explains(t.Test) {
			return fmt.Errorf("the rule of %s explains the demonstrations too", rival.name)
		}
	}
	return nil
}

// explains reports whether the rule gives all outputs.
func (s *sample) explains(pairs []arc.Pair) bool {
	for _, p := range pairs {
		if !s.apply(p.Input).Equal(p.Output) {
			return false
		}
	}
	return true
}

func mark(seen *[arc.NumColors]bool, g arc.Grid) {
	for _, v := range g.Cells {
		seen[v] = true
	}
}
