package solve

import (
	"deeploop/arc"
)

// Problem is a task as far as a solver may know it: the demonstrations and the
// test inputs.
type Problem struct {
	ID    string
	Demos []arc.Pair
	Tests []arc.Grid

	size  sizeRule
	fixed [arc.NumColors]bool // colours that every demonstration has
	used  [arc.NumColors]bool // colours of demonstrations and test inputs
	named [arc.NumColors]bool // colours that an output has and its input lacks: the rule knows them
}

// NewProblem takes the demonstrations and test inputs of a task.
func NewProblem(t *arc.Task) *Problem {
	p := &Problem{ID: t.ID, Demos: t.Train}
	for _, pair := range t.Test {
		p.Tests = append(p.Tests, pair.Input)
		mark(&p.used, pair.Input)
	}
	for c := range p.fixed {
		p.fixed[c] = true
	}
	for _, d := range p.Demos {
		var has [arc.NumColors]bool
		mark(&has, d.Input)
		mark(&has, d.Output)
		for c := range has {
			p.fixed[c] = p.fixed[c] && has[c]
			p.used[c] = p.used[c] || has[c]
		}
		var given, asked [arc.NumColors]bool
		mark(&given, d.Input)
		mark(&asked, d.Output)
		for c := range asked {
			p.named[c] = p.named[c] || asked[c] && !given[c]
		}
	}
	p.size = newSizeRule(p.Demos)
	return p
}

func mark(set *[arc.NumColors]bool, g arc.Grid) {
	for _, c := range g.Cells {
		set[c] = true
	}
}

// Side returns the side of the smallest square canvas that holds every grid:
// inputs, outputs, and the answers that the demonstrations let expect.
func (p *Problem) Side() int {
	side := 0
	grow := func(g arc.Grid) { side = max(side, g.Rows, g.Cols) }
	for _, d := range p.Demos {
		grow(d.Input)
		grow(d.Output)
	}
	for _, g := range p.Tests {
		grow(g)
		if rows, cols, ok := p.size.of(g); ok {
			side = max(side, min(rows, arc.MaxSide), min(cols, arc.MaxSide))
		}
	}
	return side
}

// canvas is Side with the margin, up to the largest grid there is.
func (p *Problem) canvas(margin int) int { return min(p.Side()+margin, arc.MaxSide) }

// expected returns the size of the answer to a test input where all
// demonstrations imply one that ARC allows.
func (p *Problem) expected(in arc.Grid) (rows, cols int, ok bool) {
	rows, cols, ok = p.size.of(in)
	if !ok || rows > arc.MaxSide || cols > arc.MaxSide {
		return 0, 0, false
	}
	return rows, cols, true
}

// sizeRule tells the size of an output from its input, an axis at a time.
type sizeRule struct{ rows, cols axisRule }

// axisRule is what all demonstrations agree on along an axis: one length, and
// one ratio num/den of output to input; 0 where they do not agree.
type axisRule struct{ constant, num, den int }

func newSizeRule(demos []arc.Pair) sizeRule {
	var r sizeRule
	for i, d := range demos {
		r.rows.take(i, d.Input.Rows, d.Output.Rows)
		r.cols.take(i, d.Input.Cols, d.Output.Cols)
	}
	return r
}

// take holds the rule against demonstration i.
func (a *axisRule) take(i, in, out int) {
	if i == 0 {
		*a = axisRule{out, out, in}
		return
	}
	if out != a.constant {
		a.constant = 0
	}
	if out*a.den != a.num*in {
		a.num = 0
	}
}

// of returns the length of the output of an input; false where the
// demonstrations imply none, or two.
func (a axisRule) of(in int) (int, bool) {
	scaled := 0
	if a.num > 0 && in*a.num%a.den == 0 {
		scaled = in * a.num / a.den
	}
	switch {
	case a.constant > 0 && scaled > 0:
		return scaled, scaled == a.constant
	case a.num > 0:
		return scaled, scaled > 0
	}
	return a.constant, a.constant > 0
}

func (r sizeRule) of(in arc.Grid) (rows, cols int, ok bool) {
	rows, ok1 := r.rows.of(in.Rows)
	cols, ok2 := r.cols.of(in.Cols)
	return rows, cols, ok1 && ok2
}
