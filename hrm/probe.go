package hrm

import (
	"context"
	"errors"
	"fmt"

	"deeploop/augment"
	"deeploop/deeploop"
	"deeploop/internal/graph"
	"deeploop/internal/kernel"
)

// Probe looks into a model at work: it runs one example segment by segment and
// computes what attends to what. It has a Segment of batch 1 of its own, so
// that training and evaluation pay nothing for it.
type Probe struct {
	segment *Segment
	eval    *Evaluator
	l, h    seenCall
}

// seenCall is the graph of one call of a module with the qkv of every block.
type seenCall struct {
	call
	qkv []*graph.Node
}

// Trace is what a model made of one example.
type Trace struct {
	rows Rows
	// Segments are the passes in order.
	Segments []TracedSegment
}

// TracedSegment is one segment of a Trace.
type TracedSegment struct {
	// Tokens [SeqLen] are the arg-max tokens after the segment.
	Tokens []uint8
	// QHalt and QContinue are the halting logits.
	QHalt, QContinue float64
	// Halts tells that a training would halt here.
	Halts bool

	zH, zL kernel.Buf // states before the segment
}

// NewProbe builds the graphs for a model.
func NewProbe(m *Model, backend kernel.Backend) (*Probe, error) {
	s, err := NewSegment(m, backend, 1)
	if err != nil {
		return nil, err
	}
	p := &Probe{segment: s, eval: NewEvaluator(s)}
	err = errors.Join(p.build(&p.l, deeploop.L), p.build(&p.h, deeploop.H))
	if err != nil {
		p.Close()
		return nil, fmt.Errorf("build model graph: %w", err)
	}
	return p, nil
}

func (p *Probe) build(c *seenCall, module deeploop.Module) (err error) {
	s, m := p.segment, p.segment.Model
	return s.build(&c.Runner, func(b *graph.Builder) []*graph.Node {
		var x *graph.Node
		c.zH, c.zL, x = s.inputs(b)
		stack, in := m.H, func() *graph.Node { return m.injectH(b, c.zH, c.zL) }
		if module == deeploop.L {
			stack, in = m.L, func() *graph.Node { return m.injectL(b, c.zL, c.zH, x) }
		}
		c.out = stack.ForwardSeen(b, in(), m.shape(1), func(_ int, qkv *graph.Node) { c.qkv = append(c.qkv, qkv) })
		return append([]*graph.Node{c.out}, c.qkv...)
	})
}

// Calls names the calls of a segment in order, such as L, L, H.
func (p *Probe) Calls() []deeploop.Module { return p.segment.Model.schedule.Calls }

// Config is the model's.
func (p *Probe) Config() Config { return p.segment.Model.Config }

// Row runs all segments on a row of a split, an example of the given puzzle.
func (p *Probe) Row(ctx context.Context, split *augment.Split, example, puzzle int) (*Trace, error) {
	rows := NewRows(1, p.Config().SeqLen)
	reader := newRowReader(split)
	if err := reader.read(rows, 0, example, puzzle); err != nil {
		return nil, err
	}
	return p.Run(ctx, rows)
}

// Run runs all segments on one row.
func (p *Probe) Run(ctx context.Context, r Rows) (*Trace, error) {
	s := p.segment
	t := &Trace{rows: r}
	s.load(r)
	s.resetState(0)
	before := func() (zH, zL kernel.Buf) { return clone(s.ZH), clone(s.ZL) }
	zH, zL := before()
	_, err := p.eval.Run(ctx, r, func(int) {
		seg := TracedSegment{
			Tokens: make([]uint8, s.Model.Config.SeqLen), QHalt: s.Q.QHalt[0], QContinue: s.Q.QContinue[0], zH: zH, zL: zL,
		}
		seg.Halts = s.Model.Config.Halts(seg.QHalt, seg.QContinue)
		s.Predicted(0, seg.Tokens)
		t.Segments = append(t.Segments, seg)
		zH, zL = before()
	})
	if err != nil {
		return nil, err
	}
	return t, nil
}

func clone(b kernel.Buf) kernel.Buf {
	c := kernel.Alloc(b.Type(), b.Len())
	copy(c.Bytes(), b.Bytes())
	return c
}

// Attention is the weights [P+T, P+T] of one head, or with head -1 the mean of
// all heads, in one block of one call (an index into Calls) of a segment (from
// 0). Row t says what position t reads; the first P positions are the task
// embedding's.
func (p *Probe) Attention(t *Trace, segment, call, block, head int) ([]float32, error) {
	s, calls := p.segment, p.Calls()
	if segment < 0 || segment >= len(t.Segments) || call < 0 || call >= len(calls) {
		return nil, fmt.Errorf("attention of segment %d, call %d: there are %d segments of %d calls", segment, call, len(t.Segments), len(calls))
	}
	if s.Model.Config.MLPT {
		return nil, errors.New("attention: this model has none, but an MLP over positions (mlp_t)")
	}
	c := &p.h
	if calls[call] == deeploop.L {
		c = &p.l
	}
	heads := s.Model.Config.NumHeads
	if block < 0 || block >= len(c.qkv) || head < -1 || head >= heads {
		return nil, fmt.Errorf("attention of block %d, head %d: there are %d blocks of %d heads", block, head, len(c.qkv), heads)
	}
	s.load(t.rows)
	if err := s.Embed(); err != nil {
		return nil, err
	}
	copy(s.ZH.Bytes(), t.Segments[segment].zH.Bytes())
	copy(s.ZL.Bytes(), t.Segments[segment].zL.Bytes())
	zH, zL, err := s.calls(calls[:call], s.ZH, s.ZL)
	if err != nil {
		return nil, err
	}
	if err := c.run(zH, zL, kernel.Buf{}); err != nil {
		return nil, err
	}
	qkv, shape := c.Buf(c.qkv[block]), s.Model.shape(1)
	if head >= 0 {
		return deeploop.AttentionWeights(qkv, shape, 0, head), nil
	}
	mean := make([]float32, shape.T*shape.T)
	for h := range heads {
		for i, w := range deeploop.AttentionWeights(qkv, shape, 0, h) {
			mean[i] += w / float32(heads)
		}
	}
	return mean, nil
}

// Close releases the graphs.
func (p *Probe) Close() {
	p.segment.Close()
	for _, c := range []*seenCall{&p.l, &p.h} {
		if c.Runner != nil {
			c.Runner.Close()
		}
	}
}
