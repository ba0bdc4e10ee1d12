package lm

import (
	"errors"
	"fmt"
	"slices"

	"deeploop/deeploop"
	"deeploop/internal/graph"
	"deeploop/internal/kernel"
	"deeploop/internal/ops"
)

// chain is a model taken apart into the visits of its sublayers, one after the
// other, with derivatives of the final state in both directions:
//
//	x_0 = embedding;  x_{s+1} = join(x_s, branch_s(x_s));  F = final norm of the last
//
//	tangent     dF for a change of the matrices that some visits see  (forward mode)
//	transposed  the gradient of ⟨u, F⟩ with respect to those matrices (reverse mode)
//
// The forward mode goes link by link. A link's derivative is the central
// difference of a step as small as the rounding of the type allows, relative to
// the link's own input: what a visit changes is differentiated before it joins
// the much larger stream, so nothing cancels however small beta/alpha is.
//
// One copy of a block serves all visits: a block's weights are copied into it
// when its turn comes, so the model is never written.
type chain struct {
	model  *Model
	visits int             // 2·K·R
	block  *deeploop.Block // the copy
	links  [2]link         // attention and MLP of block
	end    *link           // the final norm; nil without

	forward *Forward // embeds
	head    *graph.Runner
	headIn  *graph.Node
	states  []kernel.Buf // [visits+1], and F behind the final norm

	// grad is the gradient with respect to the state where the backward pass
	// stands.
	grad    kernel.Buf
	dx      kernel.Buf // the tangent of the state where the forward mode stands
	scratch [5]kernel.Buf
}

// link is one step of the state.
type link struct {
	whole, branch, join *unary // branch and join of sublayers alone
	back                *graph.Runner
	backIn              *graph.Node
	params              []*graph.Param // that back writes gradients of
}

// unary is a graph from one state, or one state and a branch's result, to
// another.
type unary struct {
	*graph.Runner
	in  []*graph.Node
	out *graph.Node
}

func (u *unary) run(out kernel.Buf, in ...kernel.Buf) error {
	for i, n := range u.in {
		u.Bind(n, in[i])
	}
	u.Bind(u.out, out)
	return u.Run()
}

func newChain(m *Model, backend kernel.Backend, a batch) (*chain, error) {
	view, err := m.view()
	if err != nil {
		return nil, err
	}
	one := m.Config.stack()
	one.Blocks = 1
	stack := deeploop.NewStack(one, m.Act.Master(), func(*graph.Param, int, bool) {})
	c := &chain{model: view, visits: 2 * m.Config.Depth(), block: stack.Blocks[0]}
	if c.forward, err = newForward(view, backend, a.rows, a.t, a.tokens); err != nil {
		return nil, err
	}
	n := c.forward.X.Len()
	states := c.visits + 1
	if m.Config.HasFinalNorm() {
		states++
	}
	for range states {
		c.states = append(c.states, kernel.Alloc(m.Act, n))
	}
	c.grad, c.dx = kernel.Alloc(m.Act, n), kernel.Alloc(m.Act, n)
	for i := range c.scratch {
		c.scratch[i] = kernel.Alloc(m.Act, n)
	}
	if err := c.build(backend, a); err != nil {
		c.Close()
		return nil, fmt.Errorf("build model graph: %w", err)
	}
	return c, nil
}

// build makes the graphs.
func (c *chain) build(backend kernel.Backend, a batch) error {
	m, bl := c.model, c.block
	r, shape, arena := m.Blocks.Residual, m.shape(a.rows, a.t), &graph.Arena{}
	builder := func() *graph.Builder {
		b := graph.NewBuilder(backend, m.Act)
		b.Share(arena)
		return b
	}
	forward := func(to **unary, inputs int, f func(b *graph.Builder, in []*graph.Node) *graph.Node) error {
		b, u := builder(), &unary{}
		for i := range inputs {
			u.in = append(u.in, b.InputOf([...]string{"x", "z"}[i], c.scratch[i], a.rows*a.t, m.Config.HiddenSize))
		}
		u.out = f(b, u.in)
		b.Place(u.out, c.scratch[inputs])
		var err error
		u.Runner, err = b.Build()
		*to = u
		return err
	}
	backward := func(to **graph.Runner, in **graph.Node, params []*graph.Param, cost func(b *graph.Builder, x *graph.Node) *graph.Node) error {
		b := builder()
		*in = c.forward.state(b)
		n := cost(b, ops.Boundary(b, *in, c.grad))
		if err := b.Gradients(n, params); err != nil {
			return err
		}
		var err error
		*to, err = b.Build(n)
		return err
	}
	branches := [2]func(b *graph.Builder, x *graph.Node) *graph.Node{
		func(b *graph.Builder, x *graph.Node) *graph.Node { return bl.AttentionBranch(b, x, r, shape) },
		func(b *graph.Builder, x *graph.Node) *graph.Node { return bl.MLPBranch(b, x, r) },
	}
	norms := [2]deeploop.Sublayer{bl.Attn, bl.MLP}
	for i := range c.links {
		l := &c.links[i]
		whole := func(b *graph.Builder, x *graph.Node) *graph.Node { return r.Join(b, x, branches[i](b, x), norms[i]) }
		l.params = matrices(bl, i)
		l.params = append(l.params, norms[i].InGain, norms[i].OutGain)
		if i == 0 {
			l.params = append(l.params, bl.QNorm, bl.KNorm)
		}
		l.params = slices.DeleteFunc(l.params, func(p *graph.Param) bool { return p == nil })
		err := errors.Join(
			forward(&l.whole, 1, func(b *graph.Builder, in []*graph.Node) *graph.Node { return whole(b, in[0]) }),
			forward(&l.branch, 1, func(b *graph.Builder, in []*graph.Node) *graph.Node { return branches[i](b, in[0]) }),
			forward(&l.join, 2, func(b *graph.Builder, in []*graph.Node) *graph.Node { return r.Join(b, in[0], in[1], norms[i]) }),
			backward(&l.back, &l.backIn, l.params, func(b *graph.Builder, x *graph.Node) *graph.Node { return ops.Seed(b, whole(b, x), c.grad) }),
		)
		if err != nil {
			return err
		}
	}
	if m.Config.HasFinalNorm() {
		l := &link{}
		c.end = l
		if m.FinalGain != nil {
			l.params = []*graph.Param{m.FinalGain}
		}
		err := errors.Join(
			forward(&l.whole, 1, func(b *graph.Builder, in []*graph.Node) *graph.Node { return m.final(b, in[0]) }),
			backward(&l.back, &l.backIn, l.params, func(b *graph.Builder, x *graph.Node) *graph.Node { return ops.Seed(b, m.final(b, x), c.grad) }),
		)
		if err != nil {
			return err
		}
	}
	return backward(&c.head, &c.headIn, []*graph.Param{m.Embed}, func(b *graph.Builder, x *graph.Node) *graph.Node {
		return ops.HeadLoss(b, x, m.Embed, a.loss, a.scale)
	})
}

// at returns link s, with the weights that it reads in place, a step along v
// from the model's (0: none).
func (c *chain) at(s int, step float64, v direction) *link {
	if s == c.visits {
		return c.end
	}
	own := c.model.Blocks.Blocks[s/2%len(c.model.Blocks.Blocks)]
	to := c.block.Params()
	for i, p := range own.Params() {
		copy(to[i].Data.Bytes(), p.Data.Bytes())
		to[i].Changed()
	}
	if step != 0 {
		for i, p := range matrices(c.block, s) {
			addScaled(p.Data, p.Data, step, v[i])
		}
	}
	return &c.links[s%2]
}

// values computes all states of the batch.
func (c *chain) values() error {
	for _, p := range c.model.Params() {
		p.Changed() // the owner may have written
	}
	if err := c.forward.Embed(); err != nil {
		return err
	}
	copy(c.states[0].Bytes(), c.forward.X.Bytes())
	for s := range len(c.states) - 1 {
		if err := c.at(s, 0, nil).whole.run(c.states[s+1], c.states[s]); err != nil {
			return err
		}
	}
	return nil
}

// lossGradient makes grad that of the loss with respect to F.
func (c *chain) lossGradient() error {
	c.model.Embed.ZeroGrad()
	c.head.Bind(c.headIn, c.states[len(c.states)-1])
	return c.head.Run()
}

// transposed takes grad, with respect to F, back to the state before visit
// first, and gives each visit on the way the gradient of its matrices.
func (c *chain) transposed(first int, visit func(s int, g direction)) error {
	for s := len(c.states) - 2; s >= first; s-- {
		l := c.at(s, 0, nil)
		for _, p := range l.params {
			p.ZeroGrad()
		}
		l.back.Bind(l.backIn, c.states[s])
		if err := l.back.Run(); err != nil {
			return err
		}
		if s < c.visits {
			m := matrices(c.block, s)
			visit(s, direction{m[0].Grad(), m[1].Grad()})
		}
	}
	return nil
}

// tangent returns dF where the matrices of some visits (rising) change by v. It
// is valid until the next call.
func (c *chain) tangent(visits []int, v direction) (kernel.Buf, error) {
	clear(c.dx.Bytes())
	moving := false // dx is not zero
	plus, minus, dy := c.scratch[0], c.scratch[1], c.scratch[2]
	for s := visits[0]; s < len(c.states)-1; s++ {
		x := c.states[s]
		clear(dy.Bytes())
		if moving {
			l := c.at(s, 0, nil)
			err := c.difference(dy, x, c.dx, norm(x), func(out, x kernel.Buf) error { return l.whole.run(out, x) })
			if err != nil {
				return dy, err
			}
		}
		if slices.Contains(visits, s) {
			m := matrices(c.model.Blocks.Blocks[s/2%len(c.model.Blocks.Blocks)], s)
			h := step(c.model.Act) * direction{m[0].Data, m[1].Data}.norm() / v.norm()
			if err := c.at(s, h, v).branch.run(plus, x); err != nil {
				return dy, err
			}
			if err := c.at(s, -h, v).branch.run(minus, x); err != nil {
				return dy, err
			}
			z, dz := c.scratch[3], c.scratch[4]
			quotient(dz, plus, minus, h)
			l := c.at(s, 0, nil)
			if err := l.branch.run(z, x); err != nil {
				return dy, err
			}
			copy(c.dx.Bytes(), dy.Bytes()) // of the stream
			err := c.difference(dy, z, dz, norm(x)*c.model.Blocks.Residual.Alpha, func(out, z kernel.Buf) error { return l.join.run(out, x, z) })
			if err != nil {
				return dy, err
			}
			addScaled(dy, dy, 1, c.dx)
			moving = true
		}
		copy(c.dx.Bytes(), dy.Bytes())
	}
	return c.dx, nil
}

// difference is df(x)·dx, a central difference of a step small beside size.
func (c *chain) difference(df, x, dx kernel.Buf, size float64, f func(out, x kernel.Buf) error) error {
	n := norm(dx)
	if n == 0 {
		clear(df.Bytes())
		return nil
	}
	h := step(c.model.Act) * size / n
	at, plus := c.scratch[0], c.scratch[1]
	addScaled(at, x, h, dx)
	if err := f(plus, at); err != nil {
		return err
	}
	addScaled(at, x, -h, dx)
	if err := f(df, at); err != nil {
		return err
	}
	quotient(df, plus, df, h)
	return nil
}

// step, relative to what changes, makes central differences as good as the type
// allows: truncation grows with its square, rounding with its inverse. Figures
// have some three digits in single precision, nine in double.
func step(t kernel.DType) float64 {
	if t == kernel.Float64 {
		return 6e-6
	}
	return 1e-3
}

// Close releases the graphs.
func (c *chain) Close() {
	c.forward.Close()
	all := []*graph.Runner{c.head}
	links := c.links[:]
	if c.end != nil {
		links = append(links, *c.end)
	}
	for _, l := range links {
		all = append(all, l.back)
		for _, u := range []*unary{l.whole, l.branch, l.join} {
			if u != nil {
				all = append(all, u.Runner)
			}
		}
	}
	for _, r := range all {
		if r != nil {
			r.Close()
		}
	}
}
