package lm

import (
	"fmt"

	"deeploop/internal/graph"
	"deeploop/internal/kernel"
	"deeploop/internal/ops"
)

// gradient computes the loss of a batch and adds its gradients to those in the
// parameters' accumulators.
type gradient interface {
	// run reads tokens and labels of the batch that it was made for.
	run() error
	Close()
}

// batch is what a gradient reads, and the losses it leaves.
type batch struct {
	rows, t int
	tokens  []int32 // [rows*t]
	loss    *ops.TokenLoss
	scale   float64 // of the loss's gradient
}

func newBatch(rows, t int, scale float64) batch {
	return batch{rows: rows, t: t, tokens: make([]int32, rows*t), loss: ops.NewTokenLoss(kernel.Softmax, rows*t, 1), scale: scale}
}

// flat is the whole model and its backward pass in one graph, which keeps the
// activations of all rounds.
type flat struct{ *graph.Runner }

// newFlat builds it. fresh says that each run starts from zero, which saves
// the gradients' own memory (graph.Builder.FreshGradients).
func newFlat(m *Model, backend kernel.Backend, a batch, fresh bool) (flat, error) {
	b := graph.NewBuilder(backend, m.Act)
	b.FreshGradients = fresh
	x := m.embed(b, a.tokens)
	for r := range m.Config.Loops {
		b.Round = r
		x = m.round(b, x, a.rows, a.t)
	}
	cost := ops.HeadLoss(b, m.final(b, x), m.Embed, a.loss, a.scale)
	if err := b.Gradients(cost, m.Params()); err != nil {
		return flat{}, err
	}
	r, err := b.Build(cost)
	if err != nil {
		return flat{}, fmt.Errorf("build model graph: %w", err)
	}
	return flat{r}, nil
}

func (f flat) run() error { return f.Run() }
func (f flat) Close()     { f.Runner.Close() }
