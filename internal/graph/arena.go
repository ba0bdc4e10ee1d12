package graph

import "deeploop/internal/kernel"

// align is the alignment in bytes of values in an arena.
const align = kernel.Align

// Arena is the working memory of graphs that never run at the same time: it is
// as large as the largest of them needs. What a graph leaves there, pinned
// outputs included, lasts until another graph of the arena runs. Memory is
// taken at the first run.
type Arena struct {
	need int // bytes of the largest graph
	mem  kernel.Buf
	lent bool // mem belongs to another graph (Spec.Lends)
	held bool // somebody holds parts of mem between runs: gradients
}

// reserve makes room for a graph.
func (a *Arena) reserve(bytes int) { a.need = max(a.need, bytes) }

// memory returns at least need bytes.
func (a *Arena) memory() kernel.Buf {
	if have := a.mem.Len() * a.mem.Type().Size(); have < a.need {
		if a.lent {
			panic("graph: a graph joined an arena after it was lent memory")
		}
		if a.held {
			panic("graph: a graph joined an arena after gradients were laid there")
		}
		a.mem = kernel.Alloc(kernel.Float32, (a.need+3)/4)
	}
	return a.mem
}

// lend gives the arena memory of another graph.
func (a *Arena) lend(mem kernel.Buf) { a.mem, a.lent = mem, true }
