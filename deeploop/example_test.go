package deeploop_test

import (
	"fmt"
	"math"
	"math/rand/v2"

	"deeploop/deeploop"
	"deeploop/internal/graph"
	"deeploop/internal/kernel"
	"deeploop/internal/kernel/ref"
	"deeploop/internal/ops"
	"deeploop/internal/optim"
	"deeploop/internal/rng"
)

// echo is a small architecture made of the parts that all models share: a stack
// of blocks that runs Loops times and is told its input again each time.
//
//	x = E[tokens];   h = x;   h <- stack(h + x)   Loops times;   logits = W h
type echo struct {
	embed, head *graph.Param // [V, D]
	stack       *deeploop.Stack
	shape       kernel.AttentionShape
	loops       int
}

func newEcho(vocab, d, heads, blocks, loops, batch, t int) *echo {
	stream := rng.NewStream(1, "weights")
	draw := func(p *graph.Param, _ int, _ bool) {
		rng.FillTruncNormal(stream, p.Data.Float32s(), 1/math.Sqrt(float64(p.Cols)))
	}
	m := &echo{
		embed: graph.NewParam("embed", kernel.Float32, vocab, d),
		head:  graph.NewParam("head", kernel.Float32, vocab, d),
		shape: kernel.AttentionShape{B: batch, T: t, N: heads, K: d / heads},
		loops: loops,
	}
	m.shape.Cos, m.shape.Sin = kernel.RopeTables(kernel.Float32, t, d/heads, 10000)
	draw(m.embed, vocab, false)
	draw(m.head, vocab, false)
	m.stack = deeploop.NewStack(deeploop.StackConfig{
		Names:  deeploop.Names{Block: "blocks.%d.", QKV: "qkv", O: "o", GateUp: "gate_up", Down: "down"},
		Blocks: blocks, D: d, F: 2 * d, Eps: 1e-6,
		Placement: deeploop.DeepLoop, InnerNorm: true,
		Rule: deeploop.Rule{P: 0.5, N: blocks * loops},
	}, kernel.Float32, draw)
	return m
}

func (m *echo) params() []*graph.Param {
	return append([]*graph.Param{m.embed, m.head}, m.stack.Params()...)
}

// forward is h [B*T, D] after the last loop.
func (m *echo) forward(b *graph.Builder, tokens []int32) *graph.Node {
	x := ops.Embed(b, ops.Embedding{
		Table: m.embed, IDs: tokens, Batch: m.shape.B, T: m.shape.T, Scale: math.Sqrt(float64(m.embed.Cols)),
	})
	h := x
	for round := range m.loops {
		b.Round = round // for gradients by visit, see graph.Param.PerRound
		h = m.stack.Forward(b, ops.Inject(b, h, x), m.shape)
	}
	return h
}

// A new architecture, trained to say its input turned by one place. One graph holds the
// forward pass, the loss and the backward pass; the loop around it is the
// caller's (internal/train has one with checkpoints).
func Example_architecture() {
	const vocab, batch, t = 5, 8, 6
	m := newEcho(vocab, 16, 2, 1, 3, batch, t)
	backend := ref.New(1)
	defer backend.Close()

	tokens := make([]int32, batch*t)
	loss := ops.NewTokenLoss(kernel.Softmax, batch*t, batch)
	b := graph.NewBuilder(backend, kernel.Float32)
	cost := ops.HeadLoss(b, m.forward(b, tokens), m.head, loss, 1.0/batch)
	if err := b.Gradients(cost, m.params()); err != nil {
		panic(err)
	}
	run, err := b.Build(cost)
	if err != nil {
		panic(err)
	}
	defer run.Close()

	var params []optim.Param
	for _, p := range m.params() {
		params = append(params, optim.NewParam(p.Name, p.Data, p.Grad(), p.Changed))
	}
	adam := optim.AdamATan2{Beta1: 0.9, Beta2: 0.95}
	rate := optim.Cosine{Base: 2e-2, Warmup: 10, Total: 200, MinRatio: 0.1}

	r := rand.New(rand.NewPCG(1, 2))
	exact := 0
	for step := 1; step <= 200; step++ {
		for i := range tokens {
			tokens[i] = int32(r.IntN(vocab))
		}
		for row := range batch {
			for i := range t {
				loss.Labels[row*t+i] = tokens[row*t+(i+1)%t]
			}
		}
		for _, p := range m.params() {
			p.ZeroGrad()
		}
		if err := run.Run(); err != nil {
			panic(err)
		}
		adam.Step(backend, params, rate.At(step))
		if step > 190 {
			for row := range batch {
				if loss.Exact(row) {
					exact++
				}
			}
		}
	}
	fmt.Println("nine in ten of the last 80 sequences all right:", exact >= 72)
	// Output: nine in ten of the last 80 sequences all right: true
}
