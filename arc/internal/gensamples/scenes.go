package main

import "deeploop/arc"

// Kinds of inputs.

// mosaic is a full grid of the given colours.
func mosaic(rows, cols int, colors ...uint8) func(*rng) arc.Grid {
	return func(r *rng) arc.Grid { return r.scatter(rows, cols, 100, colors...) }
}

// sparse is a grid with about percent of its cells coloured.
func sparse(rows, cols, percent int, colors ...uint8) func(*rng) arc.Grid {
	return func(r *rng) arc.Grid { return r.scatter(rows, cols, percent, colors...) }
}

// blocky is a small mosaic, enlarged k times.
func blocky(rows, cols, k int, colors ...uint8) func(*rng) arc.Grid {
	return func(r *rng) arc.Grid { return enlarge(k)(r.scatter(rows, cols, 80, colors...)) }
}

// dots is a black grid with lo to hi dots, no two in one row or column and
// none next to another.
func dots(rows, cols, lo, hi int, colors ...uint8) func(*rng) arc.Grid {
	return func(r *rng) arc.Grid {
		g := arc.NewGrid(rows, cols)
		var placed []cell
		n := r.between(lo, hi)
		for tries := 0; len(placed) < n && tries < 50; tries++ {
			p := cell{r.below(rows), r.below(cols)}
			free := true
			for _, q := range placed {
				free = free && p.r != q.r && p.c != q.c && max(p.r-q.r, q.r-p.r)+max(p.c-q.c, q.c-p.c) > 2
			}
			if free {
				placed = append(placed, p)
				g.Set(p.r, p.c, r.pick(colors...))
			}
		}
		return g
	}
}

// solids is a black grid with lo to hi filled rectangles that do not touch.
func solids(rows, cols, lo, hi, minSide, maxSide int, colors ...uint8) func(*rng) arc.Grid {
	return func(r *rng) arc.Grid {
		g := arc.NewGrid(rows, cols)
		for _, a := range r.rects(rows, cols, r.between(lo, hi), minSide, maxSide) {
			fill(g, a, r.pick(colors...))
		}
		return g
	}
}

// frames is like solids with outlines.
func frames(rows, cols, lo, hi, minSide, maxSide int, colors ...uint8) func(*rng) arc.Grid {
	return func(r *rng) arc.Grid {
		g := arc.NewGrid(rows, cols)
		for _, a := range r.rects(rows, cols, r.between(lo, hi), minSide, maxSide) {
			frame(g, a, r.pick(colors...))
		}
		return g
	}
}

// noisySolids is solids with single dots of other colours beside them.
func noisySolids(rows, cols, dots int, colors ...uint8) func(*rng) arc.Grid {
	return func(r *rng) arc.Grid {
		g := arc.NewGrid(rows, cols)
		taken := r.rects(rows, cols, r.between(1, 2), 2, 3)
		for _, a := range taken {
			fill(g, a, r.pick(colors...))
		}
		left := dots
		for range 10 * dots {
			y, x := r.below(rows), r.below(cols)
			dot := rect{y, x, y, x}
			free := left > 0
			for _, a := range taken {
				free = free && !dot.touches(a)
			}
			if free {
				g.Set(y, x, r.pick(colors...))
				taken = append(taken, dot)
				left--
			}
		}
		return g
	}
}

// onFloor puts scattered cells above a bottom row of floor.
func onFloor(rows, cols, percent int, floor uint8, colors ...uint8) func(*rng) arc.Grid {
	return func(r *rng) arc.Grid {
		g := r.scatter(rows, cols, percent, colors...)
		fill(g, rect{rows - 1, 0, rows - 1, cols - 1}, floor)
		return g
	}
}

// besideWall is onFloor with the floor as the left column.
func besideWall(rows, cols, percent int, wall uint8, colors ...uint8) func(*rng) arc.Grid {
	inner := onFloor(cols, rows, percent, wall, colors...)
	return func(r *rng) arc.Grid { return rotateQuarter(inner(r)) }
}

// halves puts two scattered grids of rows x cols left and right of a wall.
func halves(rows, cols, percent int, wall, left, right uint8) func(*rng) arc.Grid {
	return func(r *rng) arc.Grid {
		g := arc.NewGrid(rows, 2*cols+1)
		for y := range rows {
			for x := range cols {
				if r.chance(percent) {
					g.Set(y, x, left)
				}
				if r.chance(percent) {
					g.Set(y, cols+1+x, right)
				}
			}
			g.Set(y, cols, wall)
		}
		return g
	}
}

// turned turns the inputs of a scene by a quarter.
func turned(scene func(*rng) arc.Grid) func(*rng) arc.Grid {
	return func(r *rng) arc.Grid { return rotateQuarter(scene(r)) }
}

// halfPicture draws on the left half of a grid only.
func halfPicture(rows, cols, percent int, colors ...uint8) func(*rng) arc.Grid {
	return func(r *rng) arc.Grid {
		g := r.scatter(rows, cols, percent, colors...)
		fill(g, rect{0, cols / 2, rows - 1, cols - 1}, 0)
		return g
	}
}

// pairsOfDots puts two dots of one colour into some rows, at least two apart.
func pairsOfDots(rows, cols int, colors ...uint8) func(*rng) arc.Grid {
	return func(r *rng) arc.Grid {
		g := arc.NewGrid(rows, cols)
		for y := range rows {
			if !r.chance(45) {
				continue
			}
			a := r.below(cols - 2)
			b := r.between(a+2, cols-1)
			v := r.pick(colors...)
			g.Set(y, a, v)
			g.Set(y, b, v)
		}
		return g
	}
}

// barChart draws bars of different heights, one for each second column.
func barChart(rows, count int, color uint8) func(*rng) arc.Grid {
	return func(r *rng) arc.Grid {
		g := arc.NewGrid(rows, 2*count-1)
		for i := range count {
			h := r.between(1, rows)
			fill(g, rect{rows - h, 2 * i, rows - 1, 2 * i}, color)
		}
		return g
	}
}

// unfinishedRows repeats a short piece and leaves the last cells black.
func unfinishedRows(rows, cols, missing int, colors ...uint8) func(*rng) arc.Grid {
	return func(r *rng) arc.Grid {
		piece := r.scatter(rows, r.between(2, 3), 100, colors...)
		g := remap(piece, rows, cols, func(y, x int) (int, int) { return y, x % piece.Cols })
		fill(g, rect{0, cols - missing, rows - 1, cols - 1}, 0)
		return g
	}
}

// shapeInBlack is one joined shape somewhere in a black grid.
func shapeInBlack(rows, cols, minSide, maxSide int, colors ...uint8) func(*rng) arc.Grid {
	return func(r *rng) arc.Grid {
		g := arc.NewGrid(rows, cols)
		for _, a := range r.rects(rows, cols, 1, minSide, maxSide) {
			v := r.pick(colors...)
			for y := a.r0; y <= a.r1; y++ {
				for x := a.c0; x <= a.c1; x++ {
					if r.chance(75) {
						g.Set(y, x, v)
					}
				}
			}
		}
		return g
	}
}

// smallPieces is a black grid with strips of 1 to 3 cells of one colour that
// do not touch.
func smallPieces(rows, cols, count int, color uint8) func(*rng) arc.Grid {
	return func(r *rng) arc.Grid {
		g := arc.NewGrid(rows, cols)
		for _, a := range r.rects(rows, cols, count, 1, 3) {
			if a.rows() > 1 && a.cols() > 1 {
				a.r1 = a.r0
			}
			fill(g, a, color)
		}
		return g
	}
}

// besideDivider puts full grids left and right of a wall.
func besideDivider(rows, left, right int, wall uint8, colors ...uint8) func(*rng) arc.Grid {
	return func(r *rng) arc.Grid {
		g := r.scatter(rows, left+1+right, 100, colors...)
		fill(g, rect{0, left, rows - 1, left}, wall)
		return g
	}
}
