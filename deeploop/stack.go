package deeploop

import (
	"fmt"

	"deeploop/internal/graph"
	"deeploop/internal/kernel"
	"deeploop/internal/ops"
)

// Stack is a list of blocks with one residual rule; a call runs them all.
type Stack struct {
	Blocks   []*Block
	Residual Residual
	// Rule and Beta are kept for reports; beta acts only at initialisation.
	Rule Rule
	Beta float64
	// FinalGain is the closing norm's gain under PreNorm; nil without gain.
	FinalGain *graph.Param
	closes    bool // with the closing norm
}

// StackConfig says how to make a stack.
type StackConfig struct {
	Names     Names
	Blocks    int
	D, F      int // hidden and MLP width
	Placement Placement
	InnerNorm bool
	Gain      bool // learned gains in the norms
	Eps       float64
	Rule      Rule
	// Alpha and Beta override the rule where positive.
	Alpha, Beta float64
	SwiGLUBeta  string // MLP matrices that get beta, SwiGLUBetaAll where empty

	// Mix, where set, is what the first sublayer of each block is in the place
	// of attention.
	Mix Mix

	MLP     MLP
	HeadDim int  // width of an attention head; needed for QKNorm
	QKNorm  bool // learned RMSNorm on each head's q and k
	// OpenEnd leaves out the closing norm of PreNorm: the stack runs again.
	OpenEnd bool
}

// Mix describes a SwiGLU over the positions of a row, for every feature by
// itself (TRM's mlp_t, after MLP-Mixer, arXiv 2105.01601). The sublayer's norms
// run over positions too. The zero value is none.
type Mix struct {
	T, F int // positions and width
}

// MLP is the kind of feed-forward sublayer; the zero value is SwiGLU.
type MLP struct {
	Plain      bool // down·act(up·x) in place of SwiGLU
	Activation kernel.Activation
}

// The MLP matrices that beta scales.
const (
	SwiGLUBetaAll    = "all"     // gate, up and down
	SwiGLUBetaUpDown = "up_down" // up and down
	SwiGLUBetaDown   = "down"
)

// Init draws a weight [Rows, Cols] = [out, in]; the stack scales it by beta
// afterwards. fanOut is out of each of the matrices that p stacks (q, k and v;
// gate and up). residual tells a matrix whose result is added to the stream.
type Init func(p *graph.Param, fanOut int, residual bool)

// NewStack makes the blocks with weights drawn by init, in the order qkv, o,
// gate_up, down of each block. t is the master type.
func NewStack(c StackConfig, t kernel.DType, init Init) *Stack {
	s := &Stack{
		Residual: Residual{Placement: c.Placement, Alpha: 1, InnerNorm: c.InnerNorm, Eps: c.Eps},
		Rule:     c.Rule, Beta: 1,
	}
	if c.Placement.Scaled() {
		s.Residual.Alpha, s.Beta = c.Rule.Alpha(), c.Rule.Beta()
		if c.Alpha > 0 {
			s.Residual.Alpha = c.Alpha
		}
		if c.Beta > 0 {
			s.Beta = c.Beta
		}
	}
	gainOf := func(name string, width int) *graph.Param {
		if !c.Gain {
			return nil
		}
		return Gain(name, t, width)
	}
	gain := func(name string) *graph.Param { return gainOf(name, c.D) }
	first := c.D // what the first sublayer's norms run over
	if c.Mix.T > 0 {
		first = c.Mix.T
	}
	up := 2 * c.F
	if c.MLP.Plain {
		up = c.F
	}
	for i := range c.Blocks {
		prefix, n := fmt.Sprintf(c.Names.Block, i), c.Names
		bl := &Block{
			GateUp: graph.NewParam(prefix+n.GateUp, t, up, c.D),
			Down:   graph.NewParam(prefix+n.Down, t, c.D, c.F),
			Gated:  !c.MLP.Plain, Activation: c.MLP.Activation,
		}
		if c.Mix.T > 0 {
			bl.MixGateUp = graph.NewParam(prefix+n.MixGateUp, t, 2*c.Mix.F, c.Mix.T)
			bl.MixDown = graph.NewParam(prefix+n.MixDown, t, c.Mix.T, c.Mix.F)
			init(bl.MixGateUp, c.Mix.F, false)
			init(bl.MixDown, c.Mix.T, true)
		} else {
			bl.QKV = graph.NewParam(prefix+n.QKV, t, 3*c.D, c.D)
			bl.O = graph.NewParam(prefix+n.O, t, c.D, c.D)
			init(bl.QKV, c.D, false)
			init(bl.O, c.D, true)
		}
		init(bl.GateUp, c.F, false)
		init(bl.Down, c.D, true)
		bl.scale(s.Beta, c.SwiGLUBeta)
		if c.Placement != PreNorm {
			bl.Attn.OutGain, bl.MLP.OutGain = gainOf(prefix+n.AttnOut, first), gain(prefix+n.MLPOut)
		}
		if s.Residual.inner() {
			bl.Attn.InGain, bl.MLP.InGain = gainOf(prefix+n.AttnIn, first), gain(prefix+n.MLPIn)
		}
		if c.QKNorm {
			bl.QNorm, bl.KNorm = Gain(prefix+n.QNorm, t, c.HeadDim), Gain(prefix+n.KNorm, t, c.HeadDim)
		}
		s.Blocks = append(s.Blocks, bl)
	}
	if c.Placement == PreNorm && !c.OpenEnd {
		s.closes, s.FinalGain = true, gain(c.Names.Final)
	}
	return s
}

// Gain makes a vector of ones [1, d].
func Gain(name string, t kernel.DType, d int) *graph.Param {
	p := graph.NewParam(name, t, 1, d)
	for i := range d {
		p.Data.SetAt(i, 1)
	}
	return p
}

// scale multiplies by beta what the branch output is linear in: value rows,
// output and feed-forward matrices; never q and k (DeepNet, A.2).
func (bl *Block) scale(beta float64, swiglu string) {
	if beta == 1 {
		return
	}
	mul := func(b kernel.Buf) {
		for i := range b.Len() {
			b.SetAt(i, b.At(i)*beta)
		}
	}
	mlp := func(gateUp, down *graph.Param) {
		mul(down.Data)
		switch swiglu {
		case "", SwiGLUBetaAll:
			mul(gateUp.Data)
		case SwiGLUBetaUpDown:
			up := gateUp.Data
			mul(up.Slice(up.Len()-down.Data.Len(), up.Len()))
		case SwiGLUBetaDown:
		default:
			panic("deeploop: swiglu_beta is not all, up_down or down")
		}
	}
	if bl.MixDown != nil {
		mlp(bl.MixGateUp, bl.MixDown)
	} else {
		d := bl.O.Rows
		mul(bl.QKV.Data.Slice(2*d*d, 3*d*d))
		mul(bl.O.Data)
	}
	mlp(bl.GateUp, bl.Down)
	for _, p := range bl.matrices() {
		p.Changed()
	}
}

// Forward is one call on x [B*T, D]. With shape.Queries the result is that of
// the first positions of each row alone, which saves most of the last block.
func (s *Stack) Forward(b *graph.Builder, x *graph.Node, shape kernel.AttentionShape) *graph.Node {
	whole := shape
	whole.Queries = 0
	last := len(s.Blocks) - 1
	for _, bl := range s.Blocks[:last] {
		x = bl.Forward(b, x, s.Residual, whole)
	}
	x = s.Blocks[last].Forward(b, x, s.Residual, shape)
	if s.closes {
		x = ops.ResidualNorm(b, x, nil, s.FinalGain, 1, s.Residual.Eps)
	}
	return x
}

// ForwardCached is one call on new positions x [shape.T, D] of one sequence;
// caches holds the earlier ones, one cache per block.
func (s *Stack) ForwardCached(b *graph.Builder, x *graph.Node, shape kernel.AttentionShape, caches []*ops.KVCache) *graph.Node {
	for i, bl := range s.Blocks {
		x = bl.ForwardCached(b, x, s.Residual, shape, caches[i])
	}
	if s.closes {
		x = ops.ResidualNorm(b, x, nil, s.FinalGain, 1, s.Residual.Eps)
	}
	return x
}

// Params lists the trained parameters in the order of the blocks.
func (s *Stack) Params() []*graph.Param {
	var ps []*graph.Param
	for _, bl := range s.Blocks {
		ps = append(ps, bl.Params()...)
	}
	if s.FinalGain != nil {
		ps = append(ps, s.FinalGain)
	}
	return ps
}
