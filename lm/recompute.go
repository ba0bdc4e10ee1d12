package lm

import (
	"errors"
	"fmt"

	"deeploop/internal/graph"
	"deeploop/internal/kernel"
	"deeploop/internal/ops"
)

// recompute is the backward pass round by round: the forward pass keeps the
// state before each round and nothing else, and a round's activations are
// computed again when its turn comes. The memory is that of one round and R+1
// states; the work that of R rounds forward more. Losses and gradients equal
// those of flat bit for bit: every sum has the same terms in the same order.
type recompute struct {
	forward *Forward
	states  []kernel.Buf // [R+1] of [B*T, D]: states[r] goes into round r
	// grad is the gradient of the cost with respect to the state between two
	// rounds, [B*T, D]: each graph reads that of its output and leaves that of
	// its input.
	grad kernel.Buf

	head, round, embed *graph.Runner
	headIn, roundIn    *graph.Node
}

func newRecompute(m *Model, backend kernel.Backend, a batch) (*recompute, error) {
	f, err := newForward(m, backend, a.rows, a.t, a.tokens)
	if err != nil {
		return nil, err
	}
	c := &recompute{forward: f, grad: kernel.Alloc(m.Act, f.X.Len())}
	for range m.Config.Loops + 1 {
		c.states = append(c.states, kernel.Alloc(m.Act, f.X.Len()))
	}
	arena := &graph.Arena{}
	// build makes a graph whose scalar cost has gradients in params.
	build := func(to **graph.Runner, params []*graph.Param, cost func(b *graph.Builder) *graph.Node) error {
		b := graph.NewBuilder(backend, m.Act)
		b.Share(arena)
		n := cost(b)
		if err := b.Gradients(n, params); err != nil {
			return err
		}
		var err error
		*to, err = b.Build(n)
		return err
	}
	head := []*graph.Param{m.Embed}
	if m.FinalGain != nil {
		head = append(head, m.FinalGain)
	}
	embed := []*graph.Param{m.Embed}
	if m.EmbedGain != nil {
		embed = append(embed, m.EmbedGain)
	}
	err = errors.Join(
		build(&c.head, head, func(b *graph.Builder) *graph.Node {
			c.headIn = f.state(b)
			z := m.final(b, ops.Boundary(b, c.headIn, c.grad))
			return ops.HeadLoss(b, z, m.Embed, a.loss, a.scale)
		}),
		build(&c.round, m.Blocks.Params(), func(b *graph.Builder) *graph.Node {
			c.roundIn = f.state(b)
			x := ops.Boundary(b, c.roundIn, c.grad)
			return ops.Seed(b, m.round(b, x, a.rows, a.t), c.grad)
		}),
		build(&c.embed, embed, func(b *graph.Builder) *graph.Node {
			return ops.Seed(b, m.embed(b, a.tokens), c.grad)
		}),
	)
	if err != nil {
		c.Close()
		return nil, fmt.Errorf("build model graph: %w", err)
	}
	return c, nil
}

func (c *recompute) run() error {
	f := c.forward
	if err := f.Embed(); err != nil {
		return err
	}
	copy(c.states[0].Bytes(), f.X.Bytes())
	last := len(c.states) - 1
	for r := range last {
		if err := f.roundTo(c.states[r], c.states[r+1]); err != nil {
			return err
		}
	}
	c.head.Bind(c.headIn, c.states[last])
	if err := c.head.Run(); err != nil {
		return err
	}
	for r := last - 1; r >= 0; r-- {
		c.round.Bind(c.roundIn, c.states[r])
		if err := c.round.Run(); err != nil {
			return err
		}
	}
	return c.embed.Run()
}

func (c *recompute) Close() {
	c.forward.Close()
	for _, r := range []*graph.Runner{c.head, c.round, c.embed} {
		if r != nil {
			r.Close()
		}
	}
}
