package main

import "deeploop/arc"

// Rules about dots, lines, frames and objects.

// cell is a place in a grid.
type cell struct{ r, c int }

// objects returns the groups of cells that are not black, joined by sides, in
// reading order of their first cells.
func objects(g arc.Grid) [][]cell {
	seen := make([]bool, len(g.Cells))
	var found [][]cell
	for r := range g.Rows {
		for c := range g.Cols {
			if g.At(r, c) != 0 && !seen[r*g.Cols+c] {
				found = append(found, flood(g, seen, cell{r, c}, func(v uint8) bool { return v != 0 }))
			}
		}
	}
	return found
}

// flood gathers the cells joined to start for which in holds.
func flood(g arc.Grid, seen []bool, start cell, in func(v uint8) bool) []cell {
	seen[start.r*g.Cols+start.c] = true
	group := []cell{start}
	for i := 0; i < len(group); i++ {
		for _, d := range []cell{{-1, 0}, {0, -1}, {0, 1}, {1, 0}} {
			r, c := group[i].r+d.r, group[i].c+d.c
			if r < 0 || c < 0 || r >= g.Rows || c >= g.Cols || seen[r*g.Cols+c] || !in(g.At(r, c)) {
				continue
			}
			seen[r*g.Cols+c] = true
			group = append(group, cell{r, c})
		}
	}
	return group
}

func paint(g arc.Grid, cells []cell, v uint8) {
	for _, p := range cells {
		g.Set(p.r, p.c, v)
	}
}

// fillEnclosed colours black cells that cannot reach the edge.
func fillEnclosed(v uint8) func(arc.Grid) arc.Grid {
	return func(g arc.Grid) arc.Grid {
		out := g.Clone()
		seen := make([]bool, len(g.Cells))
		for r := range g.Rows {
			for c := range g.Cols {
				if g.At(r, c) != 0 || seen[r*g.Cols+c] {
					continue
				}
				group := flood(g, seen, cell{r, c}, func(v uint8) bool { return v == 0 })
				open := false
				for _, p := range group {
					open = open || p.r == 0 || p.c == 0 || p.r == g.Rows-1 || p.c == g.Cols-1
				}
				if !open {
					paint(out, group, v)
				}
			}
		}
		return out
	}
}

// drawBorder colours the outermost cells.
func drawBorder(v uint8) func(arc.Grid) arc.Grid {
	return func(g arc.Grid) arc.Grid {
		out := g.Clone()
		frame(out, rect{0, 0, g.Rows - 1, g.Cols - 1}, v)
		return out
	}
}

// keepLargest erases every object but the largest.
func keepLargest(g arc.Grid) arc.Grid {
	var best []cell
	twice := false
	for _, o := range objects(g) {
		if len(o) == len(best) {
			twice = true
		}
		if len(o) > len(best) {
			best, twice = o, false
		}
	}
	if best == nil || twice {
		return arc.Grid{}
	}
	out := arc.NewGrid(g.Rows, g.Cols)
	for _, p := range best {
		out.Set(p.r, p.c, g.At(p.r, p.c))
	}
	return out
}

// eraseDots erases objects of a single cell.
func eraseDots(g arc.Grid) arc.Grid {
	out := g.Clone()
	for _, o := range objects(g) {
		if len(o) == 1 {
			paint(out, o, 0)
		}
	}
	return out
}

// recolorBySize colours objects of 1, 2, ... cells with the given colours.
func recolorBySize(colors ...uint8) func(arc.Grid) arc.Grid {
	return func(g arc.Grid) arc.Grid {
		out := g.Clone()
		for _, o := range objects(g) {
			if len(o) > len(colors) {
				return arc.Grid{}
			}
			paint(out, o, colors[len(o)-1])
		}
		return out
	}
}

// hollow erases cells whose eight neighbours have their own colour.
func hollow(g arc.Grid) arc.Grid {
	out := g.Clone()
	for r := 1; r < g.Rows-1; r++ {
		for c := 1; c < g.Cols-1; c++ {
			inside := g.At(r, c) != 0
			for dr := -1; dr <= 1; dr++ {
				for dc := -1; dc <= 1; dc++ {
					inside = inside && g.At(r+dr, c+dc) == g.At(r, c)
				}
			}
			if inside {
				out.Set(r, c, 0)
			}
		}
	}
	return out
}

// fromDots draws on black cells, for each cell that is not black, whatever
// the ray function colours. A later dot does not cover an earlier one.
func fromDots(draw func(g, out arc.Grid, r, c int)) func(arc.Grid) arc.Grid {
	return func(g arc.Grid) arc.Grid {
		out := g.Clone()
		for r := range g.Rows {
			for c := range g.Cols {
				if g.At(r, c) != 0 {
					draw(g, out, r, c)
				}
			}
		}
		return out
	}
}

// setBlack colours a cell if it lies inside and is still black.
func setBlack(out arc.Grid, r, c int, v uint8) {
	if r >= 0 && c >= 0 && r < out.Rows && c < out.Cols && out.At(r, c) == 0 {
		out.Set(r, c, v)
	}
}

// dotsToRows draws a line across the grid through every dot.
var dotsToRows = fromDots(func(g, out arc.Grid, r, c int) {
	for x := range g.Cols {
		setBlack(out, r, x, g.At(r, c))
	}
})

// dotsToColumns draws a line down the grid through every dot.
var dotsToColumns = fromDots(func(g, out arc.Grid, r, c int) {
	for y := range g.Rows {
		setBlack(out, y, c, g.At(r, c))
	}
})

// dotsToCrosses draws both lines through every dot.
var dotsToCrosses = fromDots(func(g, out arc.Grid, r, c int) {
	for x := range g.Cols {
		setBlack(out, r, x, g.At(r, c))
	}
	for y := range g.Rows {
		setBlack(out, y, c, g.At(r, c))
	}
})

// dotsToDiagonals draws a line from every dot down to the right.
var dotsToDiagonals = fromDots(func(g, out arc.Grid, r, c int) {
	for k := 1; r+k < g.Rows && c+k < g.Cols; k++ {
		setBlack(out, r+k, c+k, g.At(r, c))
	}
})

// halo draws a ring of v around every dot.
func halo(v uint8) func(arc.Grid) arc.Grid {
	return fromDots(func(_, out arc.Grid, r, c int) {
		for dr := -1; dr <= 1; dr++ {
			for dc := -1; dc <= 1; dc++ {
				setBlack(out, r+dr, c+dc, v)
			}
		}
	})
}

// connectDots fills the cells between two dots of one colour in a row.
func connectDots(g arc.Grid) arc.Grid {
	out := g.Clone()
	for r := range g.Rows {
		last := -1
		for c := range g.Cols {
			if g.At(r, c) == 0 {
				continue
			}
			if last >= 0 && g.At(r, last) == g.At(r, c) {
				fill(out, rect{r, last, r, c}, g.At(r, c))
			}
			last = c
		}
	}
	return out
}

// completeSideways fills black cells from their mirror images, left and right.
func completeSideways(g arc.Grid) arc.Grid { return complete(g, mirrorSideways(g)) }

// completeUpDown fills black cells from their mirror images, up and down.
func completeUpDown(g arc.Grid) arc.Grid { return complete(g, mirrorUpDown(g)) }

func complete(g, image arc.Grid) arc.Grid {
	out := g.Clone()
	for i, v := range image.Cells {
		if out.Cells[i] == 0 {
			out.Cells[i] = v
		} else if v != 0 && v != out.Cells[i] {
			return arc.Grid{}
		}
	}
	return out
}

// dropToFloor lets the cells of every column fall onto a bottom row of floor.
func dropToFloor(floor uint8) func(arc.Grid) arc.Grid {
	return func(g arc.Grid) arc.Grid {
		out := arc.NewGrid(g.Rows, g.Cols)
		for c := range g.Cols {
			if g.At(g.Rows-1, c) != floor {
				return arc.Grid{}
			}
			to := g.Rows - 1
			for r := g.Rows - 1; r >= 0; r-- {
				if v := g.At(r, c); v != 0 {
					out.Set(to, c, v)
					to--
				}
			}
		}
		return out
	}
}

// pullToWall is dropToFloor with the floor as the left column.
func pullToWall(wall uint8) func(arc.Grid) arc.Grid {
	drop := dropToFloor(wall)
	return func(g arc.Grid) arc.Grid {
		out := drop(rotateQuarter(rotateHalf(g)))
		if out.Empty() {
			return out
		}
		return rotateQuarter(out)
	}
}

// bars returns the heights of the columns if the grid holds bars of one
// colour that stand on the bottom row.
func bars(g arc.Grid) (heights []int, ok bool) {
	color := uint8(0)
	for c := range g.Cols {
		h := 0
		for r := g.Rows - 1; r >= 0 && g.At(r, c) != 0; r-- {
			if color == 0 {
				color = g.At(r, c)
			}
			if g.At(r, c) != color {
				return nil, false
			}
			h++
		}
		for r := range g.Rows - h {
			if g.At(r, c) != 0 {
				return nil, false
			}
		}
		heights = append(heights, h)
	}
	return heights, color != 0
}

// markBar recolours the bar whose height beats all others, the tallest or the
// shortest one.
func markBar(v uint8, beats func(a, b int) bool) func(arc.Grid) arc.Grid {
	return func(g arc.Grid) arc.Grid {
		heights, ok := bars(g)
		if !ok {
			return arc.Grid{}
		}
		best := -1
		for c, h := range heights {
			if h > 0 && (best < 0 || beats(h, heights[best])) {
				best = c
			}
		}
		out := g.Clone()
		for c, h := range heights {
			if c != best && h == heights[best] {
				return arc.Grid{}
			}
		}
		fill(out, rect{g.Rows - heights[best], best, g.Rows - 1, best}, v)
		return out
	}
}

func taller(a, b int) bool  { return a > b }
func shorter(a, b int) bool { return a < b }

// continueRows repeats each row's first cells, the period found as the
// shortest one that fits all cells before the black end.
func continueRows(g arc.Grid) arc.Grid {
	known := g.Cols
	for known > 0 {
		black := true
		for r := range g.Rows {
			black = black && g.At(r, known-1) == 0
		}
		if !black {
			break
		}
		known--
	}
	for period := 1; 2*period <= known; period++ {
		fits := true
		for r := range g.Rows {
			for c := period; c < known; c++ {
				fits = fits && g.At(r, c) == g.At(r, c-period)
			}
		}
		if fits {
			return remap(g, g.Rows, g.Cols, func(r, c int) (int, int) { return r, c % period })
		}
	}
	return arc.Grid{}
}

// markCorners recolours the corners of the rectangle around each object.
func markCorners(v uint8) func(arc.Grid) arc.Grid {
	return func(g arc.Grid) arc.Grid {
		out := g.Clone()
		for _, o := range objects(g) {
			a := rect{o[0].r, o[0].c, o[0].r, o[0].c}
			for _, p := range o {
				a = rect{min(a.r0, p.r), min(a.c0, p.c), max(a.r1, p.r), max(a.c1, p.c)}
			}
			paint(out, []cell{{a.r0, a.c0}, {a.r0, a.c1}, {a.r1, a.c0}, {a.r1, a.c1}}, v)
		}
		return out
	}
}
