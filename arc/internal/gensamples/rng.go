package main

import (
	"math/rand/v2"

	"deeploop/arc"
)

// rng draws from a fixed generator by its own rules, so that the samples do
// not change with a Go release.
type rng struct{ src *rand.PCG }

func newRNG(seed, stream uint64) *rng { return &rng{rand.NewPCG(seed, stream)} }

// below draws from 0 to n-1. The bias of the remainder is far too small to matter here.
func (r *rng) below(n int) int { return int(r.src.Uint64() % uint64(n)) }

// between draws from lo to hi, both included.
func (r *rng) between(lo, hi int) int { return lo + r.below(hi-lo+1) }

// chance is true with probability percent/100.
func (r *rng) chance(percent int) bool { return r.below(100) < percent }

// pick draws one of the colours.
func (r *rng) pick(colors ...uint8) uint8 { return colors[r.below(len(colors))] }

// scatter draws a grid whose cells are black, or one of the colours with the
// given probability in percent.
func (r *rng) scatter(rows, cols, percent int, colors ...uint8) arc.Grid {
	g := arc.NewGrid(rows, cols)
	for i := range g.Cells {
		if r.chance(percent) {
			g.Cells[i] = r.pick(colors...)
		}
	}
	return g
}

// rect is the rectangle of rows r0 to r1 and columns c0 to c1, both included.
type rect struct{ r0, c0, r1, c1 int }

func (a rect) rows() int { return a.r1 - a.r0 + 1 }
func (a rect) cols() int { return a.c1 - a.c0 + 1 }

// touches reports whether the rectangles overlap or are next to each other,
// corners included.
func (a rect) touches(b rect) bool {
	return a.r0 <= b.r1+1 && b.r0 <= a.r1+1 && a.c0 <= b.c1+1 && b.c0 <= a.c1+1
}

// rects draws up to n rectangles that do not touch, with sides from lo to hi.
func (r *rng) rects(rows, cols, n, lo, hi int) []rect {
	var found []rect
	for tries := 0; len(found) < n && tries < 50; tries++ {
		h, w := r.between(lo, hi), r.between(lo, hi)
		if h > rows || w > cols {
			continue
		}
		r0, c0 := r.below(rows-h+1), r.below(cols-w+1)
		a := rect{r0, c0, r0 + h - 1, c0 + w - 1}
		free := true
		for _, b := range found {
			free = free && !a.touches(b)
		}
		if free {
			found = append(found, a)
		}
	}
	return found
}

// fill colours a rectangle.
func fill(g arc.Grid, a rect, v uint8) {
	for y := a.r0; y <= a.r1; y++ {
		for x := a.c0; x <= a.c1; x++ {
			g.Set(y, x, v)
		}
	}
}

// frame colours the outline of a rectangle.
func frame(g arc.Grid, a rect, v uint8) {
	for y := a.r0; y <= a.r1; y++ {
		for x := a.c0; x <= a.c1; x++ {
			if y == a.r0 || y == a.r1 || x == a.c0 || x == a.c1 {
				g.Set(y, x, v)
			}
		}
	}
}
