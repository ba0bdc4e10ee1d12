package augment

import "deeploop/arc"

// NumDihedral is the number of symmetries of the square.
const NumDihedral = 8

// The transforms, numbered as in the reference: 0 identity; 1, 2, 3 turns by
// 90, 180, 270 degrees counter-clockwise; 4 left-right flip; 5 up-down flip;
// 6 transpose; 7 reflection along the other diagonal.
var dihedralInverse = [NumDihedral]int{0, 3, 2, 1, 4, 5, 6, 7}

// dihedralProduct[a][b] is "b first, then a".
var dihedralProduct = func() (table [NumDihedral][NumDihedral]int) {
	g := arc.Grid{Rows: 2, Cols: 3, Cells: []uint8{0, 1, 2, 3, 4, 5}} // no symmetry
	for a := range table {
		for b := range table[a] {
			ab := Dihedral(Dihedral(g, b), a)
			for c := range NumDihedral {
				if Dihedral(g, c).Equal(ab) {
					table[a][b] = c
				}
			}
		}
	}
	return table
}()

// Dihedral returns a new grid: g under transform t, 0 to 7. It panics on
// another t.
func Dihedral(g arc.Grid, t int) arc.Grid {
	if t < 0 || t >= NumDihedral {
		panic("augment: dihedral transform out of range")
	}
	rows, cols := g.Rows, g.Cols
	if SwapsAxes(t) {
		rows, cols = cols, rows
	}
	out := arc.NewGrid(rows, cols)
	// The source cell of (r, c) is at + r*down + c*right.
	var at, down, right int
	last := g.Rows*g.Cols - 1
	switch t {
	case 0:
		at, down, right = 0, g.Cols, 1
	case 1:
		at, down, right = g.Cols-1, -1, g.Cols
	case 2:
		at, down, right = last, -g.Cols, -1
	case 3:
		at, down, right = last-(g.Cols-1), 1, -g.Cols
	case 4:
		at, down, right = g.Cols-1, g.Cols, -1
	case 5:
		at, down, right = last-(g.Cols-1), -g.Cols, 1
	case 6:
		at, down, right = 0, 1, g.Cols
	case 7:
		at, down, right = last, -1, -g.Cols
	}
	for r := range rows {
		src := at + r*down
		for c := range cols {
			out.Cells[r*cols+c] = g.Cells[src]
			src += right
		}
	}
	return out
}

// SwapsAxes reports whether t exchanges the numbers of rows and columns.
func SwapsAxes(t int) bool { return t == 1 || t == 3 || t >= 6 }

// InverseDihedral returns the transform that undoes t.
func InverseDihedral(t int) int { return dihedralInverse[t] }

// ComposeDihedral returns the transform that equals first, then second.
func ComposeDihedral(second, first int) int { return dihedralProduct[second][first] }
