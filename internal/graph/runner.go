package graph

import (
	"errors"
	"fmt"

	G "gorgonia.org/gorgonia"

	"deeploop/internal/kernel"
)

// Runner executes one built graph any number of times.
type Runner struct {
	b       *Builder
	vm      G.VM
	planner *planner
}

// Build plans memory, compiles the graph and returns its Runner. The outputs
// named in pinned keep their memory after a run; all others may be reused.
func (b *Builder) Build(pinned ...*Node) (*Runner, error) {
	building.Lock()
	defer building.Unlock()
	order, err := executionOrder(b.g)
	if err != nil {
		return nil, fmt.Errorf("sort graph: %w", err)
	}
	keep := map[*Node]bool{}
	for _, n := range pinned {
		keep[n] = true
	}
	p, err := b.plan(order, childrenOf(b.g), keep)
	if err != nil {
		return nil, fmt.Errorf("plan graph memory: %w", err)
	}
	return &Runner{b: b, vm: G.NewTapeMachine(b.g, G.WithEngine(b.engine)), planner: p}, nil
}

// Run executes the graph once.
func (r *Runner) Run() error {
	r.b.engine.next = 0
	err := r.vm.RunAll()
	r.vm.Reset()
	if err != nil {
		return err
	}
	if r.b.engine.next != len(r.b.engine.sums) {
		return errors.New("run graph: planned sums of gradients were not computed")
	}
	return nil
}

// Close releases the machine.
func (r *Runner) Close() error { return r.vm.Close() }

// Buf returns the memory of an input, or of a pinned output after a run.
func (r *Runner) Buf(n *Node) kernel.Buf {
	if b, ok := r.b.inputs[n]; ok {
		return b
	}
	if o, ok := n.Op().(*op); ok {
		return o.buf
	}
	panic("graph: buffer of a node that is neither an input nor an op")
}

// PlannedBytes returns the memory of all outputs and what it would be without
// sharing.
func (r *Runner) PlannedBytes() (planned, unshared int) {
	return r.planner.bytes(), r.planner.total
}
