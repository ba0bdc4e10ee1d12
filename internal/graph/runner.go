package graph

import (
	"errors"
	"fmt"

	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"deeploop/internal/kernel"
)

// Runner executes one built graph any number of times.
type Runner struct {
	b     *Builder
	vm    G.VM
	plan  *plan
	sums  map[*Node]*tensor.Dense
	grads map[*GradBuf]kernel.Buf // gradients in the arena
	mem   kernel.Buf              // the arena's memory that values are bound to
	bound bool
}

// Build plans memory, compiles the graph and returns its Runner. The outputs
// named in pinned keep their memory after a run, as do placed ones; all others
// may be reused.
func (b *Builder) Build(pinned ...*Node) (*Runner, error) {
	building.Lock()
	defer building.Unlock()
	order, err := executionOrder(b.g)
	if err != nil {
		return nil, fmt.Errorf("sort graph: %w", err)
	}
	p, err := b.plan(order, childrenOf(b.g), pinned)
	if err != nil {
		return nil, fmt.Errorf("plan graph memory: %w", err)
	}
	b.arena.reserve(p.bytes)
	r := &Runner{b: b, plan: p, sums: map[*Node]*tensor.Dense{}, grads: map[*GradBuf]kernel.Buf{}}
	for _, n := range order {
		own, isOp := n.Op().(*op)
		switch {
		case isOp && own.isScalar():
			own.val, own.buf = scalar(own.Spec.Type)
		case isOp:
			own.val = denseOf(n)
		case isSum(n):
			d := denseOf(n)
			r.sums[n] = d
			b.engine.sums = append(b.engine.sums, sum{out: d, done: p.folded[n]})
		}
	}
	for n, buf := range b.placed {
		r.Bind(n, buf)
	}
	if len(p.grads) > 0 { // optimizers keep where they are
		b.arena.memory()
		b.arena.held = true
		r.bind()
	}
	r.vm = G.NewTapeMachine(b.g, G.WithEngine(b.engine))
	return r, nil
}

// Bind gives an input or a placed output other memory for the runs that
// follow. A placed output may take the memory of an input that no op reads
// after the output is written.
func (r *Runner) Bind(n *Node, buf kernel.Buf) {
	rows, cols := Dims(n)
	if buf.Len() != rows*cols || buf.Type() != TypeOf(n) {
		panic(fmt.Sprintf("graph: %d elements of %v do not fit %s", buf.Len(), buf.Type(), n.Name()))
	}
	_, isInput := r.b.inputs[n]
	_, isPlaced := r.b.placed[n]
	switch {
	case isInput:
		r.b.inputs[n] = buf
		r.b.engine.register(n.Value().(*tensor.Dense), buf)
	case isPlaced:
		r.b.placed[n] = buf
		r.set(n, buf)
	default:
		panic("graph: only inputs and placed outputs can be bound")
	}
	for out, to := range r.b.placed {
		for in, from := range r.b.inputs {
			if (n == in || n == out) && to.Ptr() == from.Ptr() && r.plan.lastRead[in] >= r.plan.written[out] {
				panic(fmt.Sprintf("graph: %v would overwrite %s before it is read", out.Op(), in.Name()))
			}
		}
	}
}

// set gives the output of an op, or a sum, its memory.
func (r *Runner) set(n *Node, buf kernel.Buf) {
	if own, ok := n.Op().(*op); ok {
		own.buf = buf
		r.b.engine.register(own.val.(*tensor.Dense), buf)
		return
	}
	r.b.engine.register(r.sums[n], buf)
}

// bind puts all values into the arena's memory, which may have moved.
func (r *Runner) bind() {
	mem := r.b.arena.memory()
	if r.bound && mem == r.mem {
		return
	}
	r.mem, r.bound = mem, true
	bytes := mem.Reinterpret(kernel.BFloat16, mem.Len()*mem.Type().Size()/2)
	part := func(k *block, t kernel.DType, n int) kernel.Buf {
		return bytes.Slice(k.offset/2, (k.offset+n*t.Size())/2).Reinterpret(t, n)
	}
	for n, k := range r.plan.block {
		rows, cols := Dims(n)
		r.set(n, part(k, TypeOf(n), rows*cols))
	}
	for o, k := range r.plan.lent {
		o.Lends.lend(part(k, kernel.BFloat16, k.bytes/2))
	}
	for g, k := range r.plan.grads {
		r.grads[g] = part(k, g.t, g.n)
		g.Buf, g.planned = r.grads[g], true
	}
}

// Run executes the graph once.
func (r *Runner) Run() error {
	r.bind()
	for g, buf := range r.grads { // another graph may have computed them last
		g.Buf = buf
		g.Reset()
	}
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

// Buf returns the memory of an input, or of a pinned or placed output after a
// run.
func (r *Runner) Buf(n *Node) kernel.Buf {
	if b, ok := r.b.inputs[n]; ok {
		return b
	}
	if !r.bound {
		r.bind()
	}
	if o, ok := n.Op().(*op); ok {
		return o.buf
	}
	panic("graph: buffer of a node that is neither an input nor an op")
}

// PlannedBytes returns the memory of all outputs but placed ones, and what
// theirs would be without sharing.
func (r *Runner) PlannedBytes() (planned, unshared int) { return r.plan.bytes, r.plan.unshared }
