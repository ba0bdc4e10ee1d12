package solve

import (
	"math/rand/v2"
	"slices"

	"deeploop/arc"
	"deeploop/augment"
	"deeploop/hrm"
)

// painter draws pairs onto canvases.
type painter struct {
	side   int
	canvas []uint8
}

func newPainter(side int) *painter { return &painter{side, make([]uint8, side*side)} }

// input writes a grid's tokens into dst [side*side].
func (p *painter) input(dst []int32, g arc.Grid, row, col int) {
	augment.Place(p.canvas, p.side, g, row, col)
	for i, t := range p.canvas {
		dst[i] = int32(t)
	}
}

// labels writes a grid's tokens into dst, padding as ignored labels.
func (p *painter) labels(dst []int32, g arc.Grid, row, col int) {
	p.input(dst, g, row, col)
	for i, t := range dst {
		if t == augment.PadToken {
			dst[i] = hrm.IgnoreLabel
		}
	}
}

// demonstrations draws training rows: a view, one of its pairs, colours and a
// place on the canvas.
type demonstrations struct {
	demos []arc.Pair
	views []View
	open  []int // views to draw from
	*painter
	draw *rand.Rand
}

// row fills row i of a batch.
func (d *demonstrations) row(dst hrm.Rows, i int) {
	view := d.open[d.draw.IntN(len(d.open))]
	pair := d.demos[d.draw.IntN(len(d.demos))]
	a := d.views[view].draw(d.draw)
	in, out := a.Apply(pair.Input), a.Apply(pair.Output)
	row := d.draw.IntN(d.side - max(in.Rows, out.Rows) + 1)
	col := d.draw.IntN(d.side - max(in.Cols, out.Cols) + 1)
	t := d.side * d.side
	d.input(dst.Inputs[i*t:(i+1)*t], in, row, col)
	d.labels(dst.Labels[i*t:(i+1)*t], out, row, col)
	dst.IDs[i] = int32(view) + 1
}

// ballot is an augmented copy of a test input that votes.
type ballot struct {
	test, view int
	aug        augment.Augmentation
	row, col   int // place on the canvas
	number     int // in the list
}

// ballots are what votes, in order, and how many votes each has.
type ballots struct {
	list  []ballot
	times []int
}

// of lists the ballots of some of the views, which are in order.
func (b ballots) of(views []int) []ballot {
	var some []ballot
	for _, one := range b.list {
		if _, found := slices.BinarySearch(views, one.view); found {
			some = append(some, one)
		}
	}
	return some
}

// triesPerBallot bounds the draws of a ballot that was not drawn before.
const triesPerBallot = 8

// ballots draws n votes for each test input, by turns over test inputs and
// views, first in the corner. Every view has as many votes as any other: where
// it shows no more different copies, one of those it has votes once more.
func (p *Problem) ballots(views []View, side, n int, draw *rand.Rand) ballots {
	var all ballots
	seen := map[ballot]int{}
	for k := range n {
		for test, g := range p.Tests {
			for try := range triesPerBallot {
				b := ballot{test: test, view: k % len(views)}
				b.aug = views[b.view].draw(draw)
				if k >= len(views) || try > 0 {
					b.row, b.col = p.place(g, b.aug, side, draw)
				}
				at, known := seen[b]
				if !known {
					seen[b] = len(all.list)
					numbered := b
					numbered.number = len(all.list)
					all.list, all.times = append(all.list, numbered), append(all.times, 1)
					break
				}
				if try == triesPerBallot-1 {
					all.times[at]++
				}
			}
		}
	}
	return all
}

// place draws where on the canvas a test input goes: anywhere its answer fits
// too, and in the corner where the answer's size is not known.
func (p *Problem) place(g arc.Grid, a augment.Augmentation, side int, draw *rand.Rand) (row, col int) {
	rows, cols, ok := p.expected(g)
	if !ok {
		return 0, 0
	}
	rows, cols = max(rows, g.Rows), max(cols, g.Cols)
	if augment.SwapsAxes(a.Dihedral) {
		rows, cols = cols, rows
	}
	if rows > side || cols > side { // of a checkpoint's canvas
		return 0, 0
	}
	return draw.IntN(side - rows + 1), draw.IntN(side - cols + 1)
}

// read takes predicted tokens [side*side] back to the corner in dst, and where
// the size of the answer is known (rows above 0, under the ballot's
// augmentation) clears everything outside it.
func read(dst, tokens []uint8, side int, b ballot, rows, cols int) {
	clear(dst)
	for r := b.row; r < side; r++ {
		copy(dst[(r-b.row)*side:(r-b.row)*side+side-b.col], tokens[r*side+b.col:(r+1)*side])
	}
	if rows == 0 {
		return
	}
	whole := rows <= side && cols <= side
	for r := range side {
		for c := range side {
			at := r*side + c
			switch {
			case r >= rows || c >= cols:
				dst[at] = augment.PadToken
			case dst[at] < augment.FirstColor:
				whole = false
			}
		}
	}
	if !whole { // not an answer of that size
		clear(dst)
	}
}
