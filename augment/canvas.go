package augment

import "deeploop/arc"

// Tokens of a canvas: 0 is padding, 1 marks the end of a grid's rows and
// columns, 2 to 11 are the colours 0 to 9.
const (
	PadToken   = 0
	EndToken   = 1
	FirstColor = 2
	VocabSize  = FirstColor + arc.NumColors
)

// Place writes g onto the canvas dst of side*side tokens with its top left
// cell at (row, col), and marks its end: a row of end tokens below and a column
// of them to the right, where there is room; the corner between stays padding.
// Everything else becomes padding. It panics when g does not fit.
func Place(dst []uint8, side int, g arc.Grid, row, col int) {
	if len(dst) != side*side || row < 0 || col < 0 || row+g.Rows > side || col+g.Cols > side {
		panic("augment: grid does not fit the canvas")
	}
	clear(dst)
	place(dst, side, g.Rows, g.Cols, g.Cells, row, col, &plainTokens)
}

// Lift is the inverse of Place for a grid of known shape.
func Lift(src []uint8, side, rows, cols, row, col int) arc.Grid {
	g := arc.NewGrid(rows, cols)
	for r := range rows {
		for c := range cols {
			g.Cells[r*cols+c] = src[(row+r)*side+col+c] - FirstColor
		}
	}
	return g
}

// tokens maps colours to tokens; 256 entries need no bounds checks.
type tokens [256]uint8

var plainTokens = tokensOf(IdentityColors())

func tokensOf(c Colors) (t tokens) {
	for old, v := range c {
		t[old] = v + FirstColor
	}
	return t
}

// place writes cells, recoloured through t, and the end marks onto a cleared
// canvas. A grid without cells leaves no mark.
func place(dst []uint8, side, rows, cols int, cells []uint8, row, col int, t *tokens) {
	if len(cells) == 0 {
		return
	}
	at := row*side + col
	marked := col+cols < side
	for len(cells) > 0 {
		line := dst[at : at+cols]
		for i, v := range cells[:cols] {
			line[i] = t[v]
		}
		if marked {
			dst[at+cols] = EndToken
		}
		cells = cells[cols:]
		at += side
	}
	if row+rows < side {
		line := dst[at : at+cols]
		for i := range line {
			line[i] = EndToken
		}
	}
}
