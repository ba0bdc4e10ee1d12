package graph

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	G "gorgonia.org/gorgonia"
)

// Memory planning (compute.md, rule 2). Every value lives from the node that
// writes it to the last node that reads it. Values live in blocks; blocks that
// are never alive at once may lie in the same place of the arena.
//
// A value gets a block of its own, with two exceptions, both of values that
// die where the new one is born: an op may write over an operand (Spec.Over; a
// sum of gradients over any operand), and an op that can add to its
// destination (Spec.Add) computes a sum of gradients itself, in the block of
// the other term.
//
// Gradients of parameters that are fresh in every run (Builder.FreshGradients)
// are values too: they live from the first op that writes them to the end.

// block is memory of the arena: bytes from offset on, taken by one value after
// the other from place first to place last in the order of execution.
type block struct {
	bytes, offset int
	first, last   int
}

// plan is where every value of a graph lives.
type plan struct {
	block    map[*Node]*block
	written  map[*Node]int  // place in the order of execution of ops and sums
	lastRead map[*Node]int  // place of the last reader; the end where pinned
	folded   map[*Node]bool // sums that the op of one term has computed
	lent     map[*op]*block // what an op lends to other graphs while it runs
	grads    map[*GradBuf]*block
	sums     []*Node // in order of execution
	bytes    int     // of the arena
	unshared int     // sum of all values, for reports
}

// isSum reports whether n is Gorgonia's own addition of two gradients.
func isSum(n *Node) bool {
	return n.Op() != nil && n.Dims() > 0 && strings.HasPrefix(n.Op().String(), "+")
}

func sizeOf(n *Node) int {
	rows, cols := Dims(n)
	return rows * cols * TypeOf(n).Size()
}

// plan lays out the memory of a graph. order is the order of execution, pinned
// the nodes whose values are read after the run.
func (b *Builder) plan(order []*Node, children func(*Node) []*Node, pinned []*Node) (*plan, error) {
	p := &plan{
		block: map[*Node]*block{}, written: map[*Node]int{}, lastRead: map[*Node]int{},
		folded: map[*Node]bool{}, lent: map[*op]*block{}, grads: map[*GradBuf]*block{},
	}
	readers := map[*Node][]*Node{}
	for i, n := range order {
		p.written[n] = i
		p.lastRead[n] = i
		if n.Op() == nil {
			p.lastRead[n] = -1
		}
		for _, c := range children(n) {
			p.lastRead[c] = i
			readers[c] = append(readers[c], n)
		}
	}
	for _, n := range pinned {
		p.lastRead[n] = len(order)
	}
	var blocks []*block
	put := func(n *Node, i int) {
		k := &block{bytes: sizeOf(n), first: i, last: p.lastRead[n]}
		p.block[n] = k
		blocks = append(blocks, k)
	}
	move := func(n *Node, k *block) {
		p.block[n] = k
		k.last = max(k.last, p.lastRead[n])
	}
	for i, n := range order {
		own, isOp := n.Op().(*op)
		if isOp {
			for _, g := range own.Grads {
				if b.fresh[g] && p.grads[g] == nil {
					k := &block{bytes: g.n * g.t.Size(), first: i, last: len(order)}
					p.grads[g] = k
					p.unshared += k.bytes
					blocks = append(blocks, k)
				}
			}
		}
		switch {
		case isOp && (own.isScalar() || own.tap): // a tap is placed with the op that writes it
		case isOp:
			p.unshared += sizeOf(n)
			if _, ok := b.placed[n]; ok {
				break
			}
			if k := p.foldInto(n, i, readers, children); k != nil {
				move(n, k)
				own.add = true
				p.folded[readers[n][0]] = true
			} else if k := p.dying(n, own.overs(), i); k != nil {
				move(n, k)
			} else {
				put(n, i)
			}
			if own.second != nil {
				n2 := b.nodes[own.second]
				p.unshared += sizeOf(n2)
				put(n2, i)
			}
			if own.Lends != nil {
				k := &block{bytes: own.Lends.need, first: i, last: i}
				p.lent[own] = k
				blocks = append(blocks, k)
			}
		case isSum(n):
			p.unshared += sizeOf(n)
			p.sums = append(p.sums, n)
			if k := p.dying(n, children(n), i); k != nil {
				move(n, k)
			} else {
				put(n, i)
			}
		case n.Op() == nil, n.Dims() == 0: // leaf, constant, sum of tokens
		default:
			return nil, fmt.Errorf("graph has a foreign op %v", n.Op())
		}
	}
	p.bytes = pack(blocks)
	return p, nil
}

// dying returns the block of the first operand that n, at place i, may write
// over: nobody reads it later, and it is as large.
func (p *plan) dying(n *Node, operands []*Node, i int) *block {
	for _, c := range operands {
		if k := p.block[c]; k != nil && k.last == i && sizeOf(c) == sizeOf(n) {
			return k
		}
	}
	return nil
}

// foldInto returns the block of x where n, at place i, can compute the sum
// x + n in it: n's op can add, only that sum reads n, and all other readers of
// x ran before.
func (p *plan) foldInto(n *Node, i int, readers map[*Node][]*Node, children func(*Node) []*Node) *block {
	own := n.Op().(*op)
	if own.Add == nil || len(readers[n]) != 1 || !isSum(readers[n][0]) || p.lastRead[n] != p.written[readers[n][0]] {
		return nil
	}
	sum := readers[n][0]
	for _, x := range children(sum) {
		k := p.block[x]
		if x == n || k == nil || p.written[x] >= i || k.last != p.written[sum] || sizeOf(x) != sizeOf(n) {
			continue
		}
		before := true
		for _, r := range readers[x] {
			before = before && (r == sum || p.written[r] < i)
		}
		if before {
			return k
		}
	}
	return nil
}

// packTries and packWork bound the search of pack: layouts, and the blocks that
// are looked at for all of them.
const (
	packTries = 200
	packWork  = 1 << 27
)

// pack gives blocks their offsets and returns the bytes of all together. It
// lays large blocks first, then tries again and again with the block that ended
// last moved to the front, until no life has more bytes alive than are taken.
func pack(blocks []*block) (total int) {
	order := slices.Clone(blocks)
	slices.SortStableFunc(order, func(a, b *block) int { return cmp.Compare(b.bytes, a.bytes) })
	total = lay(order)
	best, least := slices.Clone(order), mostAlive(order)
	for range min(packTries, packWork/(len(blocks)*len(blocks)+1)) {
		if total == least {
			break
		}
		last := 0
		for i, k := range order {
			if k.end() > order[last].end() {
				last = i
			}
		}
		k := order[last]
		order = slices.Insert(slices.Delete(order, last, last+1), 0, k)
		if n := lay(order); n < total {
			total, best = n, slices.Clone(order)
		}
	}
	return lay(best)
}

// mostAlive is the least memory that blocks can do with: the most bytes alive
// at once.
func mostAlive(blocks []*block) (most int) {
	for _, at := range blocks { // a maximum is reached where some life begins
		sum := 0
		for _, k := range blocks {
			if k.first <= at.first && at.first <= k.last {
				sum += k.padded()
			}
		}
		most = max(most, sum)
	}
	return most
}

// lay puts one block after the other to the lowest place that is free during
// its life, and returns the bytes of all together.
func lay(blocks []*block) (total int) {
	var laid []*block // by offset
	for _, k := range blocks {
		k.offset = 0
		for _, o := range laid {
			alive := k.first <= o.last && o.first <= k.last
			if alive && k.offset < o.end() && o.offset < k.end() {
				k.offset = o.end()
			}
		}
		total = max(total, k.end())
		at, _ := slices.BinarySearchFunc(laid, k, func(a, b *block) int { return cmp.Compare(a.offset, b.offset) })
		laid = slices.Insert(laid, at, k)
	}
	return total
}

// padded is the block's bytes, aligned.
func (k *block) padded() int { return (k.bytes + align - 1) / align * align }

// end is the first place behind the block, aligned.
func (k *block) end() int { return k.offset + k.padded() }

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
