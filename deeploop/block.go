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

// branch is what the branch reads of the stream x.
func (r Residual) branch(b *graph.Builder, x *graph.Node, s Sublayer) *graph.Node {
	if r.inner() {
		return ops.ResidualNorm(b, x, nil, s.InGain, 1, r.Eps)
	}
	return x
}

// Join adds the branch's result z to the stream. x and z are [M, D].
func (r Residual) Join(b *graph.Builder, x, z *graph.Node, s Sublayer) *graph.Node {
	if r.Placement == PreNorm {
		return ops.Inject(b, x, z)
	}
	return ops.ResidualNorm(b, x, z, s.OutGain, r.Alpha, r.Eps)
}

// Block is one attention and one MLP sublayer. Weights are [out, in].
type Block struct {
	// MixGateUp [2F', T] and MixDown [T, F'] are the first sublayer in the place
	// of attention (Mix); QKV and O are nil then.
	MixGateUp, MixDown *graph.Param

	QKV    *graph.Param // [3D, D], rows q, k, v
	O      *graph.Param // [D, D]
	GateUp *graph.Param // [2F, D], rows gate, up; [F, D], up alone, without gate
	Down   *graph.Param // [D, F]
	Attn   Sublayer
	MLP    Sublayer

	// QNorm and KNorm [1, head width] are the gains of an RMSNorm on each
	// head's q and k before the rotation; nil without QK-norm.
	QNorm, KNorm *graph.Param
	// Gated says that the MLP is SwiGLU; else it is down·act(up·x) with
	// Activation.
	Gated      bool
	Activation kernel.Activation
}

// Forward runs the block on x [B*T, D]. With s.Queries the result is that of
// the first positions of each row alone, [B*Queries, D]: the others give keys
// and values, and nothing else of them is computed.
func (bl *Block) Forward(b *graph.Builder, x *graph.Node, r Residual, s kernel.AttentionShape) *graph.Node {
	return bl.forward(b, x, r, s, func(qkv *graph.Node) *graph.Node { return ops.Attention(b, qkv, s) })
}

// ForwardCached is Forward for new positions [s.T, D] of one sequence behind
// those in cache, without gradient.
func (bl *Block) ForwardCached(b *graph.Builder, x *graph.Node, r Residual, s kernel.AttentionShape, cache *ops.KVCache) *graph.Node {
	return bl.forward(b, x, r, s, func(qkv *graph.Node) *graph.Node { return ops.CachedAttention(b, qkv, cache, s) })
}

func (bl *Block) forward(b *graph.Builder, x *graph.Node, r Residual, s kernel.AttentionShape, attend func(qkv *graph.Node) *graph.Node) *graph.Node {
	if bl.MixDown != nil {
		x = bl.mix(b, x, r, s)
	} else {
		z := bl.attentionBranch(b, x, r, s, attend)
		if s.Asking() < s.T {
			x = ops.Leading(b, x, s.B, s.Queries)
		}
		x = r.Join(b, x, z, bl.Attn)
	}
	return r.Join(b, x, bl.MLPBranch(b, x, r), bl.MLP)
}

// mix is the first sublayer over positions: what Residual does of x [B*T, D]
// transposed in each row of the batch, and back.
func (bl *Block) mix(b *graph.Builder, x *graph.Node, r Residual, s kernel.AttentionShape) *graph.Node {
	x = ops.Transpose(b, x, s.B) // [B*D, T]
	z := ops.SwiGLU(b, ops.Linear(b, r.branch(b, x, bl.Attn), bl.MixGateUp))
	x = r.Join(b, x, ops.Linear(b, z, bl.MixDown), bl.Attn)
	x = ops.Transpose(b, x, s.B)
	if s.Asking() < s.T {
		x = ops.Leading(b, x, s.B, s.Queries)
	}
	return x
}

// AttentionBranch is what Residual.Join adds to the stream x [B*T, D] in the
// attention sublayer.
func (bl *Block) AttentionBranch(b *graph.Builder, x *graph.Node, r Residual, s kernel.AttentionShape) *graph.Node {
	return bl.attentionBranch(b, x, r, s, func(qkv *graph.Node) *graph.Node { return ops.Attention(b, qkv, s) })
}

func (bl *Block) attentionBranch(b *graph.Builder, x *graph.Node, r Residual, s kernel.AttentionShape, attend func(qkv *graph.Node) *graph.Node) *graph.Node {
	qkv := ops.Linear(b, r.branch(b, x, bl.Attn), bl.QKV)
	if bl.QNorm != nil {
		qkv = ops.QKNorm(b, qkv, bl.QNorm, bl.KNorm, s, r.Eps)
	}
	return ops.Linear(b, attend(qkv), bl.O)
}

// MLPBranch is AttentionBranch of the MLP sublayer.
func (bl *Block) MLPBranch(b *graph.Builder, x *graph.Node, r Residual) *graph.Node {
	z := ops.Linear(b, r.branch(b, x, bl.MLP), bl.GateUp)
	if bl.Gated {
		z = ops.SwiGLU(b, z)
	} else {
		z = ops.Activate(b, z, bl.Activation)
	}
	return ops.Linear(b, z, bl.Down)
}

// Params lists the block's trained parameters in the reference's order, gains
// last.
func (bl *Block) Params() []*graph.Param {
	ps := bl.matrices()
	for _, g := range []*graph.Param{bl.QNorm, bl.KNorm, bl.Attn.InGain, bl.Attn.OutGain, bl.MLP.InGain, bl.MLP.OutGain} {
		if g != nil {
			ps = append(ps, g)
		}
	}
	return ps
}

// matrices lists those of both sublayers.
func (bl *Block) matrices() []*graph.Param {
	if bl.MixDown != nil {
		return []*graph.Param{bl.MixGateUp, bl.MixDown, bl.GateUp, bl.Down}
	}
	return []*graph.Param{bl.QKV, bl.O, bl.GateUp, bl.Down}
}
