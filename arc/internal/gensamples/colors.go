package main

import "deeploop/arc"

// Rules about the colours of single cells.

// recolor maps each cell's colour; colours that are not in the map stay.
func recolor(to map[uint8]uint8) func(arc.Grid) arc.Grid {
	return func(g arc.Grid) arc.Grid {
		out := g.Clone()
		for i, v := range g.Cells {
			if w, ok := to[v]; ok {
				out.Cells[i] = w
			}
		}
		return out
	}
}

// count returns how many cells have each colour.
func count(g arc.Grid) (n [arc.NumColors]int) {
	for _, v := range g.Cells {
		n[v]++
	}
	return n
}

// commonest returns the colour with most cells among those from first on, and
// whether it is alone in that.
func commonest(n [arc.NumColors]int, first int) (color uint8, clear bool) {
	best := first
	for c := first; c < arc.NumColors; c++ {
		if n[c] > n[best] {
			best = c
		}
	}
	clear = n[best] > 0
	for c := first; c < arc.NumColors; c++ {
		clear = clear && (c == best || n[c] < n[best])
	}
	return uint8(best), clear
}

// floodWithCommonest colours the whole grid with its commonest colour.
func floodWithCommonest(g arc.Grid) arc.Grid {
	v, clear := commonest(count(g), 0)
	if !clear {
		return arc.Grid{}
	}
	out := arc.NewGrid(g.Rows, g.Cols)
	fill(out, rect{0, 0, g.Rows - 1, g.Cols - 1}, v)
	return out
}

// rarestColor gives one cell of the colour, not black, that occurs once.
func rarestColor(g arc.Grid) arc.Grid {
	out := arc.NewGrid(1, 1)
	n := count(g)
	found := 0
	for c := 1; c < arc.NumColors; c++ {
		if n[c] == 1 {
			found++
			out.Set(0, 0, uint8(c))
		}
	}
	if found != 1 {
		return arc.Grid{}
	}
	return out
}

// countAsBar gives a row with one cell of the colour v for each such cell.
func countAsBar(v uint8) func(arc.Grid) arc.Grid {
	return func(g arc.Grid) arc.Grid {
		n := count(g)[v]
		if n == 0 || n > maxSide {
			return arc.Grid{}
		}
		out := arc.NewGrid(1, n)
		fill(out, rect{0, 0, 0, n - 1}, v)
		return out
	}
}

// combine takes the parts left and right of a wall as two masks and colours
// the cells for which want holds.
func combine(wall, v uint8, want func(a, b bool) bool) func(arc.Grid) arc.Grid {
	return func(g arc.Grid) arc.Grid {
		w := wallColumn(g, wall)
		if w < 1 || g.Cols != 2*w+1 {
			return arc.Grid{}
		}
		out := arc.NewGrid(g.Rows, w)
		for r := range g.Rows {
			for c := range w {
				if want(g.At(r, c) != 0, g.At(r, w+1+c) != 0) {
					out.Set(r, c, v)
				}
			}
		}
		return out
	}
}

func both(a, b bool) bool    { return a && b }
func either(a, b bool) bool  { return a || b }
func neither(a, b bool) bool { return !a && !b }
