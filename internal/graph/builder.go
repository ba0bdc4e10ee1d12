package graph

import (
	"fmt"
	"slices"
	"sync"

	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"deeploop/internal/kernel"

	// Without it a program with Gorgonia panics at start on this Go version.
	_ "go4.org/unsafe/assume-no-moving-gc"
)

// building serialises differentiation and compilation: Gorgonia shares
// constant nodes among graphs.
var building sync.Mutex

// Builder collects the nodes of one graph. It is not safe for concurrent use.
// Building errors are bugs in model code and panic.
type Builder struct {
	Backend kernel.Backend
	// Act is the type of activations; Act.Master() that of weights,
	// gradients of weights and statistics.
	Act kernel.DType
	// Round is the loop round that nodes added now belong to. The backward ops
	// of parameters write to that round's gradient accumulator.
	Round int
	// FreshGradients says that each run of the graph has gradients of its own,
	// which nobody reads after the next run of this graph or of one that it
	// lends memory to. They then lie in the arena, each from its first write to
	// the end of the run, where activations have died. Without it gradients
	// have memory of their own and add up over runs until ZeroGrad.
	FreshGradients bool

	g      *G.ExprGraph
	engine *engine
	arena  *Arena
	nextID uint64
	nodes  map[*op]*Node
	inputs map[*Node]kernel.Buf
	placed map[*Node]kernel.Buf
	params map[*Param]*Node
	// anchors are leaves that Gradients goes down to beside its params.
	anchors []*Node
	fresh   map[*GradBuf]bool // accumulators that lie in the arena
}

// NewBuilder starts an empty graph for a backend and an activation type.
func NewBuilder(backend kernel.Backend, act kernel.DType) *Builder {
	return &Builder{
		Backend: backend,
		Act:     act,
		g:       G.NewGraph(),
		engine:  newEngine(backend),
		arena:   &Arena{},
		inputs:  map[*Node]kernel.Buf{},
		placed:  map[*Node]kernel.Buf{},
		nodes:   map[*op]*Node{},
		params:  map[*Param]*Node{},
		fresh:   map[*GradBuf]bool{},
	}
}

// Share makes the graph use an arena together with others that never run at
// the same time; without it a graph has its own.
func (b *Builder) Share(a *Arena) { b.arena = a }

// Place makes the output of an op live in the caller's memory, see
// Runner.Bind.
func (b *Builder) Place(n *Node, buf kernel.Buf) { b.placed[n] = buf }

// Input adds a leaf [rows, cols] whose memory the caller fills before a run.
func (b *Builder) Input(name string, t kernel.DType, rows, cols int) *Node {
	return b.InputOf(name, kernel.Alloc(t, rows*cols), rows, cols)
}

// InputOf adds a leaf [rows, cols] over the caller's memory, which Runner.Bind
// can exchange.
func (b *Builder) InputOf(name string, buf kernel.Buf, rows, cols int) *Node {
	n := b.leaf(name, buf, rows, cols)
	b.inputs[n] = buf
	return n
}

func (b *Builder) leaf(name string, buf kernel.Buf, rows, cols int) *Node {
	if buf.Len() != rows*cols {
		panic(fmt.Sprintf("graph: leaf %s has %d elements, not %d x %d", name, buf.Len(), rows, cols))
	}
	d := dense(buf.Type(), rows, cols)
	b.engine.register(d, buf)
	return G.NewMatrix(b.g, tensorType(buf.Type()), G.WithShape(rows, cols), G.WithName(name), G.WithValue(d))
}

// Use returns the leaf of a parameter.
func (b *Builder) Use(p *Param) *Node {
	n, ok := b.params[p]
	if !ok {
		n = b.leaf(p.Name, p.Data, p.Rows, p.Cols)
		b.params[p] = n
	}
	return n
}

// Anchor returns a new leaf [1, 1] that Gradients differentiates with respect
// to beside the params it is given, so that an op with the leaf among its
// inputs has its Backward called though nothing below it wants a gradient.
func (b *Builder) Anchor(name string) *Node {
	n := b.leaf(name+".anchor", kernel.Alloc(b.Act.Master(), 1), 1, 1)
	b.anchors = append(b.anchors, n)
	return n
}

// Target returns the gradient accumulator of p for the current Round. Ops ask
// for it when they are added, not in Backward.
func (b *Builder) Target(p *Param) *GradBuf { return p.target(b.Round) }

// Apply adds an op to the graph and returns its output.
func (b *Builder) Apply(s Spec) *Node {
	n, _ := b.apply(s)
	return n
}

// ApplyPair adds an op with two outputs of one type and shape.
func (b *Builder) ApplyPair(s Spec) (out, second *Node) {
	out, o := b.apply(s)
	second, tap := b.apply(Spec{Name: s.Name + ".2", In: []*Node{out}, Type: s.Type, Rows: s.Rows, Cols: s.Cols})
	tap.tap, o.second = true, tap
	return out, second
}

func (b *Builder) apply(s Spec) (*Node, *op) {
	b.nextID++
	o := &op{Spec: s, id: b.nextID, b: b, in: make([]kernel.Buf, len(s.In))}
	n, err := G.ApplyOp(o, s.In...)
	if err != nil {
		panic(fmt.Sprintf("graph: apply %s: %v", s.Name, err))
	}
	if n.Op() != G.Op(o) {
		panic(fmt.Sprintf("graph: op %s has the hash of another op", o))
	}
	b.nodes[o] = n
	return n, o
}

// Again returns n's value for a backward op: n itself, or where n's op is cheap
// its output computed once more. That happens after the node after, a gradient,
// so that memory is taken only then.
func (b *Builder) Again(n, after *Node) *Node {
	o, ok := n.Op().(*op)
	if !ok || !o.Cheap {
		return n
	}
	inputs := len(o.In)
	return b.Apply(Spec{
		Name: o.Name + ".again", In: append(slices.Clone(o.In), after), Type: o.Spec.Type, Rows: o.Rows, Cols: o.Cols,
		Forward: func(out kernel.Buf, in []kernel.Buf) { o.Forward(out, in[:inputs]) },
	})
}

// Token adds a side effect, the backward op of a parameter, which writes some
// accumulators. Its scalar output stands for the gradient in the graph and is
// never read.
func (b *Builder) Token(name string, in []*Node, run func(in []kernel.Buf), writes ...*GradBuf) *Node {
	return b.Apply(Spec{
		Name: name, In: in, Type: b.Act.Master(), Grads: writes,
		Forward: func(_ kernel.Buf, in []kernel.Buf) { run(in) },
	})
}

// Gradients differentiates the scalar cost with respect to params. After a run
// of the built graph the gradients stand in the params' accumulators.
func (b *Builder) Gradients(cost *Node, params []*Param) error {
	building.Lock()
	defer building.Unlock()
	wrt := make([]*Node, len(params))
	for i, p := range params {
		wrt[i] = b.Use(p)
	}
	wrt = append(wrt, b.anchors...)
	if _, err := G.Grad(cost, wrt...); err != nil {
		return fmt.Errorf("differentiate graph: %w", err)
	}
	if b.FreshGradients {
		for o := range b.nodes {
			for _, g := range o.Grads {
				b.fresh[g] = true
			}
		}
	}
	for p := range b.params {
		for _, g := range p.Grads {
			if !b.fresh[g] {
				g.allocate()
			}
		}
	}
	return nil
}

// Dims returns the rows and columns of a node.
func Dims(n *Node) (rows, cols int) {
	s := n.Shape()
	return s[0], s[1]
}

// TypeOf returns the element type of a node.
func TypeOf(n *Node) kernel.DType {
	switch n.Dtype() {
	case tensor.Float32:
		return kernel.Float32
	case tensor.Float64:
		return kernel.Float64
	case dtypeBF16:
		return kernel.BFloat16
	}
	panic("graph: node of a foreign type")
}
