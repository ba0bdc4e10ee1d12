package voting

import "deeploop/arc"

// A key is a grid as bytes: rows, columns, cells. Equal keys are equal grids,
// so a map over keys counts grids exactly, and the key is their only copy.

// appendKey appends the key of g to dst.
func appendKey(dst []byte, g arc.Grid) []byte {
	if g.Rows > 255 || g.Cols > 255 || len(g.Cells) != g.Rows*g.Cols {
		panic("voting: grid that is larger than 255 or lacks cells")
	}
	return append(append(dst, byte(g.Rows), byte(g.Cols)), g.Cells...)
}

func keyOf(g arc.Grid) string {
	return string(appendKey(make([]byte, 0, 2+len(g.Cells)), g))
}

func gridOf(key string) arc.Grid {
	return arc.Grid{Rows: int(key[0]), Cols: int(key[1]), Cells: []byte(key[2:])}
}
