package main

import "deeploop/arc"

// Rules that move cells and look at no colour.

// remap builds a grid of rows x cols whose cell (r,c) is g's cell from(r,c).
func remap(g arc.Grid, rows, cols int, from func(r, c int) (int, int)) arc.Grid {
	if rows < 1 || cols < 1 || rows > arc.MaxSide || cols > arc.MaxSide {
		return arc.Grid{}
	}
	out := arc.NewGrid(rows, cols)
	for r := range rows {
		for c := range cols {
			y, x := from(r, c)
			out.Set(r, c, g.At(y, x))
		}
	}
	return out
}

func mirrorSideways(g arc.Grid) arc.Grid {
	return remap(g, g.Rows, g.Cols, func(r, c int) (int, int) { return r, g.Cols - 1 - c })
}

func mirrorUpDown(g arc.Grid) arc.Grid {
	return remap(g, g.Rows, g.Cols, func(r, c int) (int, int) { return g.Rows - 1 - r, c })
}

func rotateHalf(g arc.Grid) arc.Grid {
	return remap(g, g.Rows, g.Cols, func(r, c int) (int, int) { return g.Rows - 1 - r, g.Cols - 1 - c })
}

// rotateQuarter turns clockwise.
func rotateQuarter(g arc.Grid) arc.Grid {
	return remap(g, g.Cols, g.Rows, func(r, c int) (int, int) { return g.Rows - 1 - c, r })
}

func transpose(g arc.Grid) arc.Grid {
	return remap(g, g.Cols, g.Rows, func(r, c int) (int, int) { return c, r })
}

// repeatSideways puts a second copy to the right.
func repeatSideways(g arc.Grid) arc.Grid {
	return remap(g, g.Rows, 2*g.Cols, func(r, c int) (int, int) { return r, c % g.Cols })
}

// unfoldSideways puts the mirror image to the right.
func unfoldSideways(g arc.Grid) arc.Grid {
	return remap(g, g.Rows, 2*g.Cols, func(r, c int) (int, int) { return r, min(c, 2*g.Cols-1-c) })
}

// unfoldDown puts the mirror image below.
func unfoldDown(g arc.Grid) arc.Grid {
	return remap(g, 2*g.Rows, g.Cols, func(r, c int) (int, int) { return min(r, 2*g.Rows-1-r), c })
}

// enlarge makes every cell k x k cells.
func enlarge(k int) func(arc.Grid) arc.Grid {
	return func(g arc.Grid) arc.Grid {
		return remap(g, k*g.Rows, k*g.Cols, func(r, c int) (int, int) { return r / k, c / k })
	}
}

// shrink makes one cell of every k x k block of one colour.
func shrink(k int) func(arc.Grid) arc.Grid {
	return func(g arc.Grid) arc.Grid {
		if g.Rows%k != 0 || g.Cols%k != 0 {
			return arc.Grid{}
		}
		out := remap(g, g.Rows/k, g.Cols/k, func(r, c int) (int, int) { return r * k, c * k })
		if !enlarge(k)(out).Equal(g) {
			return arc.Grid{}
		}
		return out
	}
}

// shiftRight moves every row one cell to the right, the last cell comes first.
func shiftRight(g arc.Grid) arc.Grid {
	return remap(g, g.Rows, g.Cols, func(r, c int) (int, int) { return r, (c + g.Cols - 1) % g.Cols })
}

// cut returns the part of g inside a.
func cut(g arc.Grid, a rect) arc.Grid {
	return remap(g, a.rows(), a.cols(), func(r, c int) (int, int) { return a.r0 + r, a.c0 + c })
}

// cropToContent keeps the smallest rectangle around all cells that are not black.
func cropToContent(g arc.Grid) arc.Grid {
	a := rect{g.Rows, g.Cols, -1, -1}
	for r := range g.Rows {
		for c := range g.Cols {
			if g.At(r, c) != 0 {
				a = rect{min(a.r0, r), min(a.c0, c), max(a.r1, r), max(a.c1, c)}
			}
		}
	}
	return cut(g, a)
}

// wallColumn finds the only column made of wall alone, -1 if there is none.
func wallColumn(g arc.Grid, wall uint8) int {
	found := -1
	for c := range g.Cols {
		whole := true
		for r := range g.Rows {
			whole = whole && g.At(r, c) == wall
		}
		if whole && found >= 0 {
			return -1
		}
		if whole {
			found = c
		}
	}
	return found
}

// rightOfWall keeps what is to the right of a full column of wall.
func rightOfWall(wall uint8) func(arc.Grid) arc.Grid {
	return func(g arc.Grid) arc.Grid {
		w := wallColumn(g, wall)
		if w < 0 || w == g.Cols-1 {
			return arc.Grid{}
		}
		return cut(g, rect{0, w + 1, g.Rows - 1, g.Cols - 1})
	}
}
