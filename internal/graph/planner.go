package graph

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	G "gorgonia.org/gorgonia"

	"deeploop/internal/kernel"
)

// Memory planning (compute.md, rule 2). Every output lives from the node that
// writes it to the last node that reads it; outputs whose lives do not overlap
// share a slot. A sum of gradients may take over the slot of its first
// operand when nobody reads that operand later.

type slot struct {
	bytes int
	free  bool
	mem   kernel.Buf
}

type planner struct {
	slots []*slot
	total int // sum of outputs, for reports
}

// take finds the best free slot for n bytes, growing or adding one if needed.
func (p *planner) take(n int) *slot {
	var best, largest *slot
	for _, s := range p.slots {
		if !s.free {
			continue
		}
		if s.bytes >= n && (best == nil || s.bytes < best.bytes) {
			best = s
		}
		if largest == nil || s.bytes > largest.bytes {
			largest = s
		}
	}
	if best == nil {
		best = largest
	}
	if best == nil {
		best = &slot{}
		p.slots = append(p.slots, best)
	}
	best.bytes = max(best.bytes, n)
	best.free = false
	return best
}

func (p *planner) bytes() int {
	n := 0
	for _, s := range p.slots {
		n += s.bytes
	}
	return n
}

// isSum reports whether n is Gorgonia's own addition of two gradients.
func isSum(n *Node) bool {
	return n.Op() != nil && n.Dims() > 0 && strings.HasPrefix(n.Op().String(), "+")
}

// plan gives every op output and every sum its memory. order is the order of
// execution, pinned the nodes whose values are read after the run.
func (b *Builder) plan(order []*Node, children func(*Node) []*Node, pinned map[*Node]bool) (*planner, error) {
	lastUse := map[*Node]int{}
	for i, n := range order {
		lastUse[n] = max(lastUse[n], i)
		for _, c := range children(n) {
			lastUse[c] = i
		}
	}
	for n := range pinned {
		lastUse[n] = len(order)
	}
	dying := make([][]*Node, len(order)+1)
	for n, i := range lastUse {
		dying[i] = append(dying[i], n)
	}

	p := &planner{}
	held := map[*Node]*slot{}
	type placed struct {
		n *Node
		s *slot
	}
	var placedNodes []placed
	for i, n := range order {
		own, isOp := n.Op().(*op)
		switch {
		case isOp && own.isScalar():
			own.val, own.buf = scalar(own.Spec.Type)
		case isOp && own.tap: // placed with the op that writes it
		case isOp || isSum(n):
			rows, cols := Dims(n)
			bytes := rows * cols * TypeOf(n).Size()
			p.total += bytes
			var s *slot
			if isSum(n) {
				if first := children(n)[0]; held[first] != nil && lastUse[first] == i {
					s = held[first]
					delete(held, first)
				}
			}
			if s == nil {
				s = p.take(bytes)
			}
			held[n] = s
			placedNodes = append(placedNodes, placed{n, s})
			if isOp && own.second != nil {
				n2 := b.nodes[own.second]
				s2 := p.take(bytes)
				p.total += bytes
				held[n2] = s2
				placedNodes = append(placedNodes, placed{n2, s2})
			}
		case n.Op() == nil, n.Dims() == 0: // leaf, constant, sum of tokens
		default:
			return nil, fmt.Errorf("graph has a foreign op %v", n.Op())
		}
		for _, d := range dying[i] {
			if s := held[d]; s != nil {
				s.free = true
				delete(held, d)
			}
		}
	}

	for _, s := range p.slots {
		s.mem = kernel.Alloc(kernel.Float32, (s.bytes+3)/4)
	}
	for _, pl := range placedNodes {
		rows, cols := Dims(pl.n)
		buf := pl.s.mem.Reinterpret(TypeOf(pl.n), rows*cols)
		d := dense(buf, rows, cols)
		b.engine.register(d, buf)
		if own, ok := pl.n.Op().(*op); ok {
			own.val, own.buf = d, buf
		} else {
			b.engine.sums = append(b.engine.sums, d)
		}
	}
	return p, nil
}

// executionOrder returns the nodes as Gorgonia's compiler will execute them.
func executionOrder(g *G.ExprGraph) ([]*Node, error) {
	sorted, err := G.Sort(g)
	if err != nil {
		return nil, err
	}
	order := make([]*Node, len(sorted))
	for i, n := range sorted {
		order[len(sorted)-1-i] = n
	}
	return order, nil
}

// childrenOf returns a node's operands in order.
func childrenOf(g *G.ExprGraph) func(*Node) []*Node {
	return func(n *Node) []*Node {
		if o, ok := n.Op().(*op); ok {
			return o.In
		}
		// A sum: the graph gives its operands without order, which is enough
		// for lifetimes. Either may be computed in place: addition commutes.
		it := g.From(n.ID())
		var cs []*Node
		for it.Next() {
			cs = append(cs, it.Node().(*Node))
		}
		slices.SortFunc(cs, func(a, b *Node) int { return cmp.Compare(a.ID(), b.ID()) })
		return cs
	}
}
