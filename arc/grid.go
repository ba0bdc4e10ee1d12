// Package arc holds ARC tasks: grids, pairs, tasks, the readers of every
// public layout, sample tasks, the palette and drawing. It knows no model and
// no tensor.
package arc

// MaxSide is the largest number of rows or columns of an ARC grid.
const MaxSide = 30

// NumColors is the number of ARC colours, 0 to 9.
const NumColors = 10

// Grid is a rectangle of colours, row-major: the cell in row r and column c is
// Cells[r*Cols+c], 0 to 9. The zero Grid is "no grid": an unlabelled output,
// or an empty answer.
type Grid struct {
	Rows, Cols int
	Cells      []uint8
}

// NewGrid returns a grid of zeros.
func NewGrid(rows, cols int) Grid {
	return Grid{Rows: rows, Cols: cols, Cells: make([]uint8, rows*cols)}
}

// At returns the colour of row r, column c.
func (g Grid) At(r, c int) uint8 { return g.Cells[r*g.Cols+c] }

// Set colours row r, column c.
func (g Grid) Set(r, c int, v uint8) { g.Cells[r*g.Cols+c] = v }

// Empty reports whether the grid has no cell.
func (g Grid) Empty() bool { return g.Rows == 0 || g.Cols == 0 }

// Equal reports whether both grids have the same shape and cells.
func (g Grid) Equal(h Grid) bool {
	return g.Rows == h.Rows && g.Cols == h.Cols && string(g.Cells) == string(h.Cells)
}

// Clone returns a deep copy.
func (g Grid) Clone() Grid {
	return Grid{Rows: g.Rows, Cols: g.Cols, Cells: append([]uint8(nil), g.Cells...)}
}
