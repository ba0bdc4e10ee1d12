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

func both(a, b bool) bool   { return a && b }
func either(a, b bool) bool { return a || b }
