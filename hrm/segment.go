package hrm

import (
	"errors"
	"fmt"

	"deeploop/deeploop"
	"deeploop/internal/graph"
	"deeploop/internal/kernel"
	"deeploop/internal/ops"
)

// Segment executes segments of a Model on a fixed batch size: the calls
// without gradient one by one from Go, the calls with gradient in one graph
// together with losses and backward pass (compute.md, "Schedules"). All graphs
// share the model's parameters and the states below, which they read and
// replace in place.
type Segment struct {
	Model   *Model
	Batch   int
	backend kernel.Backend

	// Tokens [B*T] and Puzzle [B, PuzzleEmbDim] (nil without task embeddings)
	// are the batch; the caller fills them before a segment.
	Tokens []int32
	Puzzle *graph.Param
	// ZH and ZL [B*(P+T), D] are the states, replaced by each segment.
	ZH, ZL kernel.Buf
	// Loss holds labels, predictions and token losses; Q the halting logits.
	Loss *ops.TokenLoss
	Q    *ops.HaltLoss

	x     kernel.Buf   // embedded input
	arena *graph.Arena // of all graphs without gradient

	embed, readout *graph.Runner
	callL, callH   call

	train *graph.Runner
	cost  *graph.Node

	// The q target: the last H call of a segment as far as its q logits need
	// it, the states it works on, and which rows are on their last segment.
	qCall    call
	qH, qL   kernel.Buf
	lastStep []bool
}

// call is the graph of one call of a module. The states it reads and writes
// are bound to it at each run.
type call struct {
	*graph.Runner
	zH, zL, out *graph.Node
}

// NewSegment builds the graphs without gradient for one batch size.
func NewSegment(m *Model, backend kernel.Backend, batch int) (*Segment, error) {
	c := m.Config
	s := &Segment{Model: m, Batch: batch, backend: backend, arena: &graph.Arena{}, Q: ops.NewHaltLoss(batch)}
	s.Tokens = make([]int32, batch*c.SeqLen)
	s.ZH, s.ZL, s.x = s.newState(), s.newState(), s.newState()
	s.Loss = ops.NewTokenLoss(m.lossKind(), batch*c.Positions(), batch)
	if c.PuzzleEmbDim > 0 {
		s.Puzzle = graph.NewParam("puzzle_emb.local_weights", m.Act.Master(), batch, c.PuzzleEmbDim)
	}
	err := errors.Join(
		s.build(&s.embed, func(b *graph.Builder) []*graph.Node {
			b.Place(m.embed(b, s.Tokens, s.Puzzle, batch), s.x)
			return nil
		}),
		s.buildCall(&s.callL, s.ZL, func(b *graph.Builder, zH, zL, x *graph.Node) *graph.Node {
			return m.callL(b, zL, zH, x, batch)
		}),
		s.buildCall(&s.callH, s.ZH, func(b *graph.Builder, zH, zL, _ *graph.Node) *graph.Node {
			return m.callH(b, zH, zL, batch)
		}),
		s.build(&s.readout, func(b *graph.Builder) []*graph.Node {
			zH, _, _ := s.inputs(b)
			ce := ops.HeadLossForward(b, zH, m.LMHead, s.Loss, 1)
			return []*graph.Node{ops.QLoss(b, m.q(b, zH, batch), nil, ce, s.Loss, s.Q, 1)}
		}),
	)
	if err != nil {
		s.Close()
		return nil, fmt.Errorf("build model graph: %w", err)
	}
	return s, nil
}

// newState allocates [B*(P+T), D].
func (s *Segment) newState() kernel.Buf {
	c := s.Model.Config
	return kernel.Alloc(s.Model.Act, s.Batch*c.Positions()*c.HiddenSize)
}

// build makes a graph without gradient; outputs returns what is read after it.
func (s *Segment) build(r **graph.Runner, outputs func(b *graph.Builder) []*graph.Node) (err error) {
	b := graph.NewBuilder(s.backend, s.Model.Act)
	b.Share(s.arena)
	*r, err = b.Build(outputs(b)...)
	return err
}

// buildCall makes the graph of a call whose output replaces state (absent: it
// is pinned).
func (s *Segment) buildCall(c *call, state kernel.Buf, run func(b *graph.Builder, zH, zL, x *graph.Node) *graph.Node) error {
	return s.build(&c.Runner, func(b *graph.Builder) []*graph.Node {
		var x *graph.Node
		c.zH, c.zL, x = s.inputs(b)
		c.out = run(b, c.zH, c.zL, x)
		if state.Absent() {
			return []*graph.Node{c.out}
		}
		b.Place(c.out, state)
		return nil
	})
}

func (m *Model) lossKind() kernel.CrossEntropyKind {
	if m.Config.Loss.LossType == LossSoftmax {
		return kernel.Softmax
	}
	return kernel.Stablemax
}

func (s *Segment) inputs(b *graph.Builder) (zH, zL, x *graph.Node) {
	d := s.Model.Config.HiddenSize
	rows := s.Batch * s.Model.Config.Positions()
	return b.InputOf("z_H", s.ZH, rows, d), b.InputOf("z_L", s.ZL, rows, d), b.InputOf("x", s.x, rows, d)
}

// BuildGradient adds the graph with gradient: the last calls of the schedule,
// the losses times scale (1/global batch), and the backward pass into the
// parameters' gradients, which add up over the calls of one stack.
func (s *Segment) BuildGradient(scale float64) error {
	m := s.Model
	b := graph.NewBuilder(s.backend, m.Act)
	b.FreshGradients = true // read before anything of this segment runs again
	zH, zL, _ := s.inputs(b)
	x := m.embed(b, s.Tokens, s.Puzzle, s.Batch)
	b.Place(x, s.x) // where the calls without gradient have it
	for i, call := range m.schedule.Grad() {
		b.Round = i
		if call == deeploop.L {
			zL = m.callL(b, zL, zH, x, s.Batch)
		} else {
			zH = m.callH(b, zH, zL, s.Batch)
		}
	}
	b.Place(zH, s.ZH)
	b.Place(zL, s.ZL)
	ce := ops.HeadLoss(b, zH, m.LMHead, s.Loss, scale)
	q := m.q(b, zH, s.Batch)
	target, err := s.qTarget(b, zH, zL)
	if err != nil {
		return err
	}
	s.cost = ops.Sum(b, ce, ops.QLoss(b, q, target, ce, s.Loss, s.Q, scale))
	params := m.Params()
	if s.Puzzle != nil {
		params = append(params, s.Puzzle)
	}
	if err := b.Gradients(s.cost, params); err != nil {
		return err
	}
	s.train, err = b.Build(s.cost)
	return err
}

// qTarget adds the target [B, 1] of q_continue to the graph with gradient: one
// more segment from the new states, then σ(q_halt') on a row's last segment
// and σ(max(q_halt', q_continue')) elsewhere (architectures.md G.2). Of that
// segment only the q logits count, and they read position 0 of z_H: its last
// call computes no more than that. With a single segment there is no target,
// nor with no_ACT_continue.
func (s *Segment) qTarget(b *graph.Builder, zH, zL *graph.Node) (*graph.Node, error) {
	if !s.Model.Config.asksQTarget() {
		return nil, nil
	}
	err := s.buildCall(&s.qCall, kernel.Buf{}, func(b *graph.Builder, zH, zL, _ *graph.Node) *graph.Node {
		return s.Model.q(b, s.Model.callHFirst(b, zH, zL, s.Batch), s.Batch)
	})
	if err != nil {
		return nil, err
	}
	s.qH, s.qL, s.lastStep = s.newState(), s.newState(), make([]bool, s.Batch)
	return ops.Callback(b, "q_target", []*graph.Node{zH, zL}, s.Batch, 1, s.arena, func(out kernel.Buf, _ []kernel.Buf) {
		if err := s.runQTarget(out); err != nil {
			panic(err) // becomes the outer graph's error
		}
	}), nil
}

func (s *Segment) runQTarget(out kernel.Buf) error {
	calls := s.Model.schedule.Calls
	zH, zL, err := s.calls(calls[:len(calls)-1], s.qH, s.qL)
	if err != nil {
		return err
	}
	if err := s.qCall.run(zH, zL, kernel.Buf{}); err != nil {
		return err
	}
	q := s.qCall.Buf(s.qCall.out)
	for i := range s.Batch {
		v := q.At(2 * i)
		if !s.lastStep[i] {
			v = max(v, q.At(2*i+1))
		}
		out.SetAt(i, ops.Sigmoid(v))
	}
	return nil
}

// run executes the call on the states zH and zL and writes the new one to out
// (absent: it is pinned).
func (c *call) run(zH, zL, out kernel.Buf) error {
	c.Bind(c.zH, zH)
	c.Bind(c.zL, zL)
	if !out.Absent() {
		c.Bind(c.out, out)
	}
	return c.Run()
}

// calls runs a list of calls without gradient from the states ZH and ZL and
// returns the states after it. New states are written to toH and toL, which
// may be ZH and ZL.
func (s *Segment) calls(list []deeploop.Module, toH, toL kernel.Buf) (zH, zL kernel.Buf, err error) {
	zH, zL = s.ZH, s.ZL
	for _, m := range list {
		if m == deeploop.L {
			err = s.callL.run(zH, zL, toL)
			zL = toL
		} else {
			err = s.callH.run(zH, zL, toH)
			zH = toH
		}
		if err != nil {
			return zH, zL, err
		}
	}
	return zH, zL, nil
}

// Embed computes x from Tokens and Puzzle.
func (s *Segment) Embed() error { return s.embed.Run() }

// Train runs one segment with losses and gradients and leaves the new states
// in ZH and ZL. last says which rows are on their last allowed segment. The
// gradients are there until the Segment runs anything else.
func (s *Segment) Train(last []bool) error {
	copy(s.lastStep, last)
	if err := s.Embed(); err != nil {
		return err
	}
	if _, _, err := s.calls(s.Model.schedule.NoGrad(), s.ZH, s.ZL); err != nil {
		return err
	}
	return s.train.Run()
}

// Eval runs one segment without gradient; the caller has run Embed. With read
// set, predictions, losses and q logits are computed from the new state.
func (s *Segment) Eval(read bool) error {
	if _, _, err := s.calls(s.Model.schedule.Calls, s.ZH, s.ZL); err != nil {
		return err
	}
	if !read {
		return nil
	}
	return s.readout.Run()
}

// Logits computes the logits [B*(P+T), V] of the state ZH, those of task slots
// included: what the losses of the last Train or Eval were taken of, unless the
// head has changed since. For tests and for a search after a failure; nothing
// else needs them all at once.
func (s *Segment) Logits() kernel.Buf {
	c := s.Model.Config
	logits := kernel.Alloc(s.Model.Act.Master(), s.Batch*c.Positions()*c.VocabSize)
	s.backend.Linear(logits, s.ZH, &s.Model.LMHead.Weight)
	return logits
}

// Close releases the graphs.
func (s *Segment) Close() {
	for _, r := range []*graph.Runner{s.embed, s.callL.Runner, s.callH.Runner, s.readout, s.qCall.Runner, s.train} {
		if r != nil {
			r.Close()
		}
	}
}
