package voting

import "deeploop/arc"

// Tokens of a canvas: 0 pad, 1 end marker, 2 to 11 colours 0 to 9.
const (
	firstColor = 2
	vocabulary = firstColor + arc.NumColors
)

// Crop returns the largest grid in the top left corner of a canvas that is
// made of colours only: for every number of rows from the top, the width is
// the shortest run of colours those rows start with, and the first strictly
// largest area wins. A canvas that starts with no colour gives a 0x0 grid, one
// without end markers up to the whole canvas. tokens is row-major,
// [side*side].
func Crop(tokens []uint8, side int) arc.Grid {
	return cropInto(make([]uint8, side*side), tokens, side)
}

// cropInto is Crop with the cells in dst, [side*side].
func cropInto(dst, tokens []uint8, side int) arc.Grid {
	if len(tokens) != side*side {
		panic("voting: Crop of tokens that are not a canvas")
	}
	rows, cols := cropSize(tokens, side)
	g := arc.Grid{Rows: rows, Cols: cols, Cells: dst[:rows*cols]}
	for r := range rows {
		from, to := tokens[r*side:r*side+cols], g.Cells[r*cols:(r+1)*cols]
		for i, t := range from {
			to[i] = t - firstColor
		}
	}
	return g
}

func cropSize(tokens []uint8, side int) (rows, cols int) {
	width, area := side, 0
	for r := range side {
		for c, t := range tokens[r*side : r*side+width] {
			if t-firstColor >= arc.NumColors { // wraps below 2
				width = c
				break
			}
		}
		if width == 0 {
			break
		}
		if a := (r + 1) * width; a > area {
			area, rows, cols = a, r+1, width
		}
	}
	return rows, cols
}
