package graph

import (
	"deeploop/internal/kernel"
)

// Param is a trained (or fixed) matrix [Rows, Cols], shared by pointer among
// any number of graphs. Vectors are [1, n].
type Param struct {
	Name string
	kernel.Weight
	// Grads holds the gradient accumulators, without memory until a graph with
	// gradient needs them. There is one, unless PerRound has been called: then
	// accumulator r receives what loop round r contributes.
	Grads []*GradBuf
}

// GradBuf accumulates one gradient. The first write after Reset overwrites,
// later ones add, so nobody has to clear memory (compute.md, rule 4).
type GradBuf struct {
	Buf     kernel.Buf // ops look it up at each run
	t       kernel.DType
	n       int
	touched bool
	planned bool // Buf lies in the arena of a graph (Builder.FreshGradients)
}

// allocate gives the accumulator memory of its own.
func (g *GradBuf) allocate() {
	if g.planned {
		panic("graph: a gradient that is fresh in every run of one graph cannot accumulate in another")
	}
	if g.Buf.Absent() {
		g.Buf = kernel.Alloc(g.t, g.n)
	}
}

// Reset marks the accumulator as empty.
func (g *GradBuf) Reset() { g.touched = false }

// Touch reports whether the next write must accumulate, and marks the buffer.
func (g *GradBuf) Touch() (accumulate bool) {
	accumulate, g.touched = g.touched, true
	return accumulate
}

// NewParam allocates a parameter of master type t that has a gradient.
func NewParam(name string, t kernel.DType, rows, cols int) *Param {
	p := NewConstant(name, t, rows, cols)
	p.Grads = []*GradBuf{{t: t, n: rows * cols}}
	return p
}

// NewConstant allocates a parameter without gradient (initial states).
func NewConstant(name string, t kernel.DType, rows, cols int) *Param {
	return &Param{
		Name:   name,
		Weight: kernel.Weight{Data: kernel.Alloc(t, rows*cols), Rows: rows, Cols: cols, Version: 1},
	}
}

// PerRound gives the parameter one gradient accumulator per loop round, so
// that visit-wise gradients can be compared (kappa, architectures.md A.4).
// Graphs must be built after the call.
func (p *Param) PerRound(rounds int) {
	p.Grads = p.Grads[:1]
	for len(p.Grads) < rounds {
		p.Grads = append(p.Grads, &GradBuf{t: p.Data.Type(), n: p.Data.Len()})
	}
}

// Grad returns the gradient buffer; with one accumulator per round, that of
// round 0. It is absent until a graph with gradient has been built.
func (p *Param) Grad() kernel.Buf { return p.Grads[0].Buf }

// target returns the accumulator for a loop round.
func (p *Param) target(round int) *GradBuf {
	if round < len(p.Grads) {
		return p.Grads[round]
	}
	return p.Grads[0]
}

// ZeroGrad marks all accumulators as empty, at the start of a step.
func (p *Param) ZeroGrad() {
	for _, g := range p.Grads {
		g.Reset()
	}
}

// Changed tells backends that Data was written.
func (p *Param) Changed() { p.Version++ }

// Shape returns [Rows, Cols], or [n] for a vector.
func (p *Param) Shape() []int {
	if p.Rows == 1 {
		return []int{p.Cols}
	}
	return []int{p.Rows, p.Cols}
}
