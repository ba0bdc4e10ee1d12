package graph

import (
	"deeploop/internal/kernel"
)

// Param is a trained (or fixed) matrix [Rows, Cols], shared by pointer among
// any number of graphs. Vectors are [1, n].
type Param struct {
	Name string
	kernel.Weight
	// Grads holds the gradient accumulators. There is one, unless PerRound has
	// been called: then accumulator r receives what loop round r contributes.
	Grads []*GradBuf
}

// GradBuf accumulates one gradient. The first write after Reset overwrites,
// later ones add, so nobody has to clear memory (compute.md, rule 4).
type GradBuf struct {
	Buf     kernel.Buf
	touched bool
}

// Reset marks the accumulator as empty.
func (g *GradBuf) Reset() { g.touched = false }

// Touch reports whether the next write must accumulate, and marks the buffer.
func (g *GradBuf) Touch() (accumulate bool) {
	accumulate, g.touched = g.touched, true
	return accumulate
}

// NewParam allocates a parameter of master type t with a gradient.
func NewParam(name string, t kernel.DType, rows, cols int) *Param {
	p := NewConstant(name, t, rows, cols)
	p.Grads = []*GradBuf{{Buf: kernel.Alloc(t, rows*cols)}}
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
		p.Grads = append(p.Grads, &GradBuf{Buf: kernel.Alloc(p.Data.Type(), p.Data.Len())})
	}
}

// Grad returns the gradient buffer; with one accumulator per round, that of
// round 0.
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
