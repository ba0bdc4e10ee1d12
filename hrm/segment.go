package hrm

import (
	"fmt"

	"deeploop/deeploop"
	"deeploop/internal/graph"
	"deeploop/internal/kernel"
	"deeploop/internal/ops"
)

// Segment executes segments of a Model on a fixed batch size: the calls
// without gradient one by one from Go, the calls with gradient in one graph
// together with losses and backward pass (compute.md, "Schedules"). All graphs
// share the model's parameters and the states below.
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

	x                          kernel.Buf // embedded input
	runEmbed, runL, runH       *graph.Runner
	outX, outL, outH           *graph.Node
	runQ, runRead              *graph.Runner
	outQ, outReadQ, outLogits  *graph.Node
	train                      *graph.Runner
	trainH, trainL, trainLogit *graph.Node
	cost                       *graph.Node
	lastStep                   []bool // rows on their last segment, for the q target
}

// NewSegment builds the graphs without gradient for one batch size.
func NewSegment(m *Model, backend kernel.Backend, batch int) (*Segment, error) {
	c := m.Config
	rows := batch * c.Positions()
	s := &Segment{
		Model: m, Batch: batch, backend: backend,
		Tokens: make([]int32, batch*c.SeqLen),
		ZH:     kernel.Alloc(m.Act, rows*c.HiddenSize),
		ZL:     kernel.Alloc(m.Act, rows*c.HiddenSize),
		x:      kernel.Alloc(m.Act, rows*c.HiddenSize),
		Loss:   ops.NewTokenLoss(m.lossKind(), rows, batch),
		Q:      ops.NewHaltLoss(batch),
	}
	if c.PuzzleEmbDim > 0 {
		s.Puzzle = graph.NewParam("puzzle_emb.local_weights", m.Act.Master(), batch, c.PuzzleEmbDim)
	}
	steps := []struct {
		run   **graph.Runner
		build func(b *graph.Builder) []*graph.Node
	}{
		{&s.runEmbed, func(b *graph.Builder) []*graph.Node {
			s.outX = m.embed(b, s.Tokens, s.Puzzle, batch)
			return []*graph.Node{s.outX}
		}},
		{&s.runL, func(b *graph.Builder) []*graph.Node {
			zH, zL, x := s.inputs(b)
			s.outL = m.callL(b, zL, zH, x, batch)
			return []*graph.Node{s.outL}
		}},
		{&s.runH, func(b *graph.Builder) []*graph.Node {
			zH, zL, _ := s.inputs(b)
			s.outH = m.callH(b, zH, zL, batch)
			return []*graph.Node{s.outH}
		}},
		{&s.runQ, func(b *graph.Builder) []*graph.Node {
			zH, _, _ := s.inputs(b)
			s.outQ = m.q(b, zH, batch)
			return []*graph.Node{s.outQ}
		}},
		{&s.runRead, func(b *graph.Builder) []*graph.Node {
			zH, _, _ := s.inputs(b)
			s.outLogits = m.logits(b, zH)
			ce := ops.CrossEntropy(b, s.outLogits, s.Loss, 1)
			s.outReadQ = m.q(b, zH, batch)
			return []*graph.Node{s.outLogits, ops.QLoss(b, s.outReadQ, nil, ce, s.Loss, s.Q, 1)}
		}},
	}
	for _, st := range steps {
		b := graph.NewBuilder(backend, m.Act)
		r, err := b.Build(st.build(b)...)
		if err != nil {
			s.Close()
			return nil, fmt.Errorf("build model graph: %w", err)
		}
		*st.run = r
	}
	return s, nil
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
// parameters' gradients.
func (s *Segment) BuildGradient(scale float64) error {
	m := s.Model
	s.lastStep = make([]bool, s.Batch)
	b := graph.NewBuilder(s.backend, m.Act)
	zH, zL, _ := s.inputs(b)
	x := m.embed(b, s.Tokens, s.Puzzle, s.Batch)
	for i, call := range m.schedule.Grad() {
		b.Round = i
		if call == deeploop.L {
			zL = m.callL(b, zL, zH, x, s.Batch)
		} else {
			zH = m.callH(b, zH, zL, s.Batch)
		}
	}
	s.trainH, s.trainL, s.trainLogit = zH, zL, m.logits(b, zH)
	ce := ops.CrossEntropy(b, s.trainLogit, s.Loss, scale)
	q := m.q(b, zH, s.Batch)
	var target *graph.Node
	if m.Config.HaltMaxSteps > 1 {
		target = ops.Callback(b, "q_target", []*graph.Node{zH, zL}, s.Batch, 1, s.qTarget)
	}
	s.cost = ops.Sum(b, ce, ops.QLoss(b, q, target, ce, s.Loss, s.Q, scale))
	params := m.Params()
	if s.Puzzle != nil {
		params = append(params, s.Puzzle)
	}
	if err := b.Gradients(s.cost, params); err != nil {
		return err
	}
	var err error
	s.train, err = b.Build(zH, zL, s.trainLogit, s.cost)
	return err
}

// call runs one call without gradient and replaces the state it writes.
func (s *Segment) call(m deeploop.Module) error {
	if m == deeploop.L {
		if err := s.runL.Run(); err != nil {
			return err
		}
		s.backend.Convert(s.ZL, s.runL.Buf(s.outL))
		return nil
	}
	if err := s.runH.Run(); err != nil {
		return err
	}
	s.backend.Convert(s.ZH, s.runH.Buf(s.outH))
	return nil
}

func (s *Segment) calls(list []deeploop.Module) error {
	for _, m := range list {
		if err := s.call(m); err != nil {
			return err
		}
	}
	return nil
}

// Embed computes x from Tokens and Puzzle.
func (s *Segment) Embed() error {
	if err := s.runEmbed.Run(); err != nil {
		return err
	}
	s.backend.Convert(s.x, s.runEmbed.Buf(s.outX))
	return nil
}

// Train runs one segment with losses and gradients and leaves the new states
// in ZH and ZL. last says which rows are on their last allowed segment.
func (s *Segment) Train(last []bool) error {
	copy(s.lastStep, last)
	if err := s.Embed(); err != nil {
		return err
	}
	if err := s.calls(s.Model.schedule.NoGrad()); err != nil {
		return err
	}
	for _, p := range s.Model.Params() {
		p.ZeroGrad()
	}
	if s.Puzzle != nil {
		s.Puzzle.ZeroGrad()
	}
	if err := s.train.Run(); err != nil {
		return err
	}
	s.backend.Convert(s.ZH, s.train.Buf(s.trainH))
	s.backend.Convert(s.ZL, s.train.Buf(s.trainL))
	return nil
}

// qTarget fills out [B, 1] with the target of q_continue: one more segment
// from the new states, then σ(q_halt') on a row's last segment and
// σ(max(q_halt', q_continue')) elsewhere (architectures.md G.2). It runs inside
// the graph with gradient, after its last call; that graph has read ZH and ZL
// by then, so they serve as working memory.
func (s *Segment) qTarget(out kernel.Buf, in []kernel.Buf) {
	s.backend.Convert(s.ZH, in[0])
	s.backend.Convert(s.ZL, in[1])
	err := s.calls(s.Model.schedule.Calls)
	if err == nil {
		err = s.runQ.Run()
	}
	if err != nil {
		panic(err) // becomes the outer graph's error
	}
	q := s.runQ.Buf(s.outQ)
	for i := range s.Batch {
		v := q.At(2 * i)
		if !s.lastStep[i] {
			v = max(v, q.At(2*i+1))
		}
		out.SetAt(i, ops.Sigmoid(v))
	}
}

// Eval runs one segment without gradient; the caller has run Embed. With read
// set, predictions, losses and q logits are computed from the new state.
func (s *Segment) Eval(read bool) error {
	if err := s.calls(s.Model.schedule.Calls); err != nil {
		return err
	}
	if !read {
		return nil
	}
	return s.runRead.Run()
}

// Logits returns the logits [B*(P+T), V] of the last Train or, with eval set,
// of the last Eval with read.
func (s *Segment) Logits(eval bool) kernel.Buf {
	if eval {
		return s.runRead.Buf(s.outLogits)
	}
	return s.train.Buf(s.trainLogit)
}

// Close releases the graphs.
func (s *Segment) Close() {
	for _, r := range []*graph.Runner{s.runEmbed, s.runL, s.runH, s.runQ, s.runRead, s.train} {
		if r != nil {
			r.Close()
		}
	}
}
