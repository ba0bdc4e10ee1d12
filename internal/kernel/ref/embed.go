package ref

import "deeploop/internal/kernel"

// Embed looks up tokens, prepends the puzzle slots, adds positions, scales.
func (b *Backend) Embed(y kernel.Buf, a kernel.EmbedArgs) {
	kernel.CheckEmbed(y, a)
	defer b.flush()
	if y.Type() == kernel.Float64 {
		embed(b, out[float64](b, y, false), a)
	} else {
		embed(b, out[float32](b, y, false), a)
	}
}

func embed[S real](b *Backend, y []S, a kernel.EmbedArgs) {
	table, puzzle, pos := in[S](b, a.Table), in[S](b, a.Puzzle), in[S](b, a.Pos)
	d, rows, scale := a.D, a.Prefix+a.T, S(a.Scale)
	b.split(a.Batch*rows, func(lo, hi int) {
		for r := lo; r < hi; r++ {
			i, p := r/rows, r%rows
			row := y[r*d : r*d+d]
			if p < a.Prefix {
				n := copy(row, puzzleSlot(puzzle, a, i, p))
				clear(row[n:])
			} else {
				id := int(a.IDs[i*a.T+p-a.Prefix])
				copy(row, table[id*d:id*d+d])
			}
			if pos != nil {
				axpy(row, 1, pos[p*d:p*d+d])
			}
			for j := range row {
				row[j] *= scale
			}
		}
	})
}

// puzzleSlot returns the part of row i's puzzle vector that fills position p:
// D elements, fewer at the end, perhaps none.
func puzzleSlot[S real](puzzle []S, a kernel.EmbedArgs, i, p int) []S {
	if puzzle == nil {
		return nil
	}
	lo, hi := min(p*a.D, a.PuzzleDim), min((p+1)*a.D, a.PuzzleDim)
	return puzzle[i*a.PuzzleDim+lo : i*a.PuzzleDim+hi]
}

// EmbedBackward scatters dy into the gradients of table, puzzle and positions.
func (b *Backend) EmbedBackward(dTable, dPuzzle, dPos, dy kernel.Buf, a kernel.EmbedArgs, accumulate bool) {
	kernel.CheckEmbedBackward(dTable, dPuzzle, dPos, dy, a)
	defer b.flush()
	if dy.Type() == kernel.Float64 {
		embedBackward(b, in[float64](b, dTable), in[float64](b, dPuzzle), in[float64](b, dPos), in[float64](b, dy), a, accumulate)
	} else {
		embedBackward(b, in[float32](b, dTable), in[float32](b, dPuzzle), in[float32](b, dPos), in[float32](b, dy), a, accumulate)
	}
}

func embedBackward[S real](b *Backend, dTable, dPuzzle, dPos, dy []S, a kernel.EmbedArgs, accumulate bool) {
	if !accumulate {
		clear(dTable)
		clear(dPos)
	}
	d, rows, scale := a.D, a.Prefix+a.T, S(a.Scale)
	b.split(d, func(lo, hi int) { // by columns: no two goroutines add to one element
		for r := 0; r < a.Batch*rows; r++ {
			i, p := r/rows, r%rows
			g := dy[r*d+lo : r*d+hi]
			if dPos != nil {
				axpy(dPos[p*d+lo:p*d+hi], scale, g)
			}
			if p >= a.Prefix {
				if dTable != nil {
					id := int(a.IDs[i*a.T+p-a.Prefix])
					axpy(dTable[id*d+lo:id*d+hi], scale, g)
				}
				continue
			}
			slot := puzzleSlot(dPuzzle, a, i, p)
			for j := lo; j < min(hi, len(slot)); j++ {
				slot[j] = scale * g[j-lo]
			}
		}
	})
}
