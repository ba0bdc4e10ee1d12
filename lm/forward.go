package lm

import (
	"errors"
	"fmt"

	"deeploop/internal/graph"
	"deeploop/internal/kernel"
	"deeploop/internal/ops"
)

// Forward runs a model without gradient, one round at a time, so that the loop
// count is the caller's: Embed, Round R times, then Head.
type Forward struct {
	Model    *Model
	Batch, T int
	// Tokens [B*T] are read by Embed, Loss.Labels [B*T] by Head. Head leaves
	// losses and predictions in Loss.
	Tokens []int32
	Loss   *ops.TokenLoss
	// X [B*T, D] is the state, replaced by Embed and Round.
	X kernel.Buf

	backend            kernel.Backend
	embed, round, head *graph.Runner
	in, out            *graph.Node // of round
}

// NewForward builds the graphs for batches of so many sequences of t tokens,
// at most the model's context.
func NewForward(m *Model, backend kernel.Backend, batch, t int) (*Forward, error) {
	return newForward(m, backend, batch, t, make([]int32, batch*t))
}

// newForward reads the caller's tokens.
func newForward(m *Model, backend kernel.Backend, batch, t int, tokens []int32) (*Forward, error) {
	f := &Forward{
		Model: m, Batch: batch, T: t, backend: backend,
		Tokens: tokens, Loss: ops.NewTokenLoss(kernel.Softmax, batch*t, 1),
		X: kernel.Alloc(m.Act, batch*t*m.Config.HiddenSize),
	}
	arena := &graph.Arena{}
	build := func(r **graph.Runner, outputs func(b *graph.Builder) []*graph.Node) (err error) {
		b := graph.NewBuilder(backend, m.Act)
		b.Share(arena)
		*r, err = b.Build(outputs(b)...)
		return err
	}
	err := errors.Join(
		build(&f.embed, func(b *graph.Builder) []*graph.Node {
			b.Place(m.embed(b, f.Tokens), f.X)
			return nil
		}),
		build(&f.round, func(b *graph.Builder) []*graph.Node {
			f.in = f.state(b)
			f.out = m.round(b, f.in, batch, t)
			b.Place(f.out, f.X)
			return nil
		}),
		build(&f.head, func(b *graph.Builder) []*graph.Node {
			return []*graph.Node{ops.HeadLossForward(b, m.final(b, f.state(b)), m.Embed, f.Loss, 1)}
		}),
	)
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("build model graph: %w", err)
	}
	return f, nil
}

func (f *Forward) state(b *graph.Builder) *graph.Node {
	return b.InputOf("x", f.X, f.Batch*f.T, f.Model.Config.HiddenSize)
}

// Embed computes X from Tokens.
func (f *Forward) Embed() error { return f.embed.Run() }

// Round runs the stored blocks once on X.
func (f *Forward) Round() error { return f.roundTo(f.X, f.X) }

// roundTo runs the stored blocks once, from one state to another one or the
// same.
func (f *Forward) roundTo(from, to kernel.Buf) error {
	f.round.Bind(f.in, from)
	f.round.Bind(f.out, to)
	return f.round.Run()
}

// Head computes losses and predictions from X.
func (f *Forward) Head() error { return f.head.Run() }

// Run is Embed, so many rounds, and Head.
func (f *Forward) Run(loops int) error {
	if err := f.Embed(); err != nil {
		return err
	}
	for range loops {
		if err := f.Round(); err != nil {
			return err
		}
	}
	return f.Head()
}

// Logits computes the logits [B*T, V] of X in the master type.
func (f *Forward) Logits() (kernel.Buf, error) {
	m := f.Model
	z := f.X
	if m.Config.HasFinalNorm() {
		b := graph.NewBuilder(f.backend, m.Act)
		n := m.final(b, f.state(b))
		r, err := b.Build(n)
		if err != nil {
			return kernel.Buf{}, fmt.Errorf("build model graph: %w", err)
		}
		defer r.Close()
		if err := r.Run(); err != nil {
			return kernel.Buf{}, err
		}
		z = r.Buf(n)
	}
	logits := kernel.Alloc(m.Act.Master(), f.Batch*f.T*m.Config.VocabSize)
	f.backend.Linear(logits, z, &m.Embed.Weight)
	return logits, nil
}

// Close releases the graphs.
func (f *Forward) Close() {
	for _, r := range []*graph.Runner{f.embed, f.round, f.head} {
		if r != nil {
			r.Close()
		}
	}
}
