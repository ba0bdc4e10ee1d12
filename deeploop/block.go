package deeploop

import (
	"deeploop/internal/graph"
	"deeploop/internal/kernel"
	"deeploop/internal/ops"
)

// Residual is how a sublayer's branch f joins the stream x:
//
//	x <- norm_out( Alpha·x + f( norm_in(x) ) )
//
// with the norms that Placement and InnerNorm leave in.
type Residual struct {
	Placement Placement
	Alpha     float64 // 1 for postnorm and prenorm
	InnerNorm bool    // norm_in under DeepLoop; the others fix it
	Eps       float64
}

// inner reports whether the branch reads a normed stream.
func (r Residual) inner() bool {
	return r.Placement == PreNorm || r.Placement == DeepLoop && r.InnerNorm
}

// Sublayer holds the norms' gains; nil means a norm without gain.
type Sublayer struct {
	InGain, OutGain *graph.Param // [1, D]
}

// apply joins branch to the stream. x is [M, D].
func (r Residual) apply(b *graph.Builder, x *graph.Node, s Sublayer, branch func(*graph.Node) *graph.Node) *graph.Node {
	u := x
	if r.inner() {
		u = ops.ResidualNorm(b, x, nil, s.InGain, 1, r.Eps)
	}
	z := branch(u)
	if r.Placement == PreNorm {
		return ops.Inject(b, x, z)
	}
	return ops.ResidualNorm(b, x, z, s.OutGain, r.Alpha, r.Eps)
}

// Block is one attention and one MLP sublayer. Weights are [out, in].
type Block struct {
	QKV    *graph.Param // [3D, D], rows q, k, v
	O      *graph.Param // [D, D]
	GateUp *graph.Param // [2F, D], rows gate, up
	Down   *graph.Param // [D, F]
	Attn   Sublayer
	MLP    Sublayer
}

// Forward runs the block on x [B*T, D].
func (bl *Block) Forward(b *graph.Builder, x *graph.Node, r Residual, s kernel.AttentionShape) *graph.Node {
	x = r.apply(b, x, bl.Attn, func(u *graph.Node) *graph.Node {
		return ops.Linear(b, ops.Attention(b, ops.Linear(b, u, bl.QKV), s), bl.O)
	})
	return r.apply(b, x, bl.MLP, func(u *graph.Node) *graph.Node {
		return ops.Linear(b, ops.SwiGLU(b, ops.Linear(b, u, bl.GateUp)), bl.Down)
	})
}

// Params lists the block's trained parameters in the reference's order, gains
// last.
func (bl *Block) Params() []*graph.Param {
	ps := []*graph.Param{bl.QKV, bl.O, bl.GateUp, bl.Down}
	for _, g := range []*graph.Param{bl.Attn.InGain, bl.Attn.OutGain, bl.MLP.InGain, bl.MLP.OutGain} {
		if g != nil {
			ps = append(ps, g)
		}
	}
	return ps
}
