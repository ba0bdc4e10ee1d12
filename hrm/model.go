package hrm

import (
	"fmt"
	"math"

	"deeploop/deeploop"
	"deeploop/internal/graph"
	"deeploop/internal/kernel"
	"deeploop/internal/ops"
	"deeploop/internal/rng"
	"deeploop/internal/wording"
)

// Model is the Hierarchical Reasoning Model (arXiv 2506.21734;
// architectures.md G.1): a fast stack L and a slow stack H of transformer
// blocks, called in turn on two states.
//
//	x   = √D · ( embed(tokens) with the task embedding in front )
//	z_L = L( z_L + z_H + x )      L_cycles times per cycle
//	z_H = H( z_H + z_L )          at the end of a cycle
//	logits = lm_head(z_H),  q_halt, q_continue = q_head(z_H at position 0)
//
// The Tiny Recursive Model (TRM, arXiv 2510.04871; architectures.md G.8) is the
// same with one stack, net, in the place of both:
//
//	z_L = net( z_L + z_H + x )    L_cycles times per cycle
//	z_H = net( z_H + z_L )        at the end of a cycle
//
// The methods embed, callL, callH and q below are these lines; logits exist
// only within ops.HeadLoss, a chunk of rows at a time.
// Parameters carry the reference's state-dict names without "model.inner.".
type Model struct {
	Config Config
	// Act is the type of activations; weights are Act.Master().
	Act kernel.DType

	EmbedTokens *graph.Param // [V, D]
	EmbedPos    *graph.Param // [P+T, D], nil without learned positions
	InputGain   *graph.Param // [1, D], nil unless input_rms and norm_gain
	LMHead      *graph.Param // [V, D]
	QHead       *graph.Param // [2, D]
	QHeadBias   *graph.Param // [1, 2]
	// H and L are one and the same stack in TRM.
	H, L *deeploop.Stack

	// HInit and LInit are the states of a fresh row, [D] master, drawn once
	// and not trained.
	HInit, LInit kernel.Buf
	// PuzzleTable [NumPuzzleIdentifiers, PuzzleEmbDim] master holds the task
	// embeddings; absent when PuzzleEmbDim is 0.
	PuzzleTable kernel.Buf

	schedule deeploop.Schedule
	cos, sin kernel.Buf // [P+T, K/2], absent without rotary positions
}

// qHeadBias makes a fresh model halt late: σ(-5) is 0.7 %.
const qHeadBias = -5

// NewModel draws a model from the stream named "weights" of seed: LeCun
// truncated normal matrices (times beta where the residual rule says so),
// embeddings of standard deviation 1/√D, states of 1, zero task embeddings and
// q head with bias -5.
func NewModel(c Config, act kernel.DType, seed uint64) (*Model, error) {
	stream := rng.NewStream(seed, "weights")
	return newModel(c, act, func(b kernel.Buf, std float64) {
		if b.Type() == kernel.Float64 {
			rng.FillTruncNormal(stream, b.Float64s(), std)
		} else {
			rng.FillTruncNormal(stream, b.Float32s(), std)
		}
	})
}

// newModel makes a model whose random numbers, of a given standard deviation,
// come from draw.
func newModel(c Config, act kernel.DType, draw func(b kernel.Buf, std float64)) (*Model, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	if err := c.ValidateSizes(); err != nil {
		return nil, err
	}
	schedule, err := c.schedule()
	if err != nil {
		return nil, err
	}
	t, d := act.Master(), c.HiddenSize
	lecun := func(p *graph.Param, _ int, _ bool) { draw(p.Data, 1/math.Sqrt(float64(p.Cols))) }
	embStd := 1 / math.Sqrt(float64(d))

	m := &Model{Config: c, Act: act, schedule: schedule}
	m.EmbedTokens = graph.NewParam("embed_tokens.embedding_weight", t, c.VocabSize, d)
	draw(m.EmbedTokens.Data, embStd)
	m.LMHead = graph.NewParam("lm_head.weight", t, c.VocabSize, d)
	lecun(m.LMHead, c.VocabSize, false)
	m.QHead = graph.NewParam("q_head.weight", t, 2, d)
	m.QHeadBias = graph.NewParam("q_head.bias", t, 1, 2)
	for i := range 2 {
		m.QHeadBias.Data.SetAt(i, qHeadBias)
	}
	if c.PuzzleEmbDim > 0 {
		m.PuzzleTable = kernel.Alloc(t, c.NumPuzzleIdentifiers*c.PuzzleEmbDim)
	}
	switch c.PosEncodings {
	case PosLearned:
		m.EmbedPos = graph.NewParam("embed_pos.embedding_weight", t, c.Positions(), d)
		draw(m.EmbedPos.Data, embStd)
	case PosRope:
		m.cos, m.sin = kernel.RopeTables(t, c.Positions(), c.HeadDim(), c.RopeTheta)
	}
	if c.InputRMS && c.NormGain {
		m.InputGain = graph.NewParam("input_norm.weight", t, 1, d)
		for i := range d {
			m.InputGain.Data.SetAt(i, 1)
		}
	}
	if !c.OneNetwork() {
		m.H = deeploop.NewStack(c.stack("H_level", c.HLayers, c.PH, c.AlphaH, c.BetaH), t, lecun)
	}
	m.L = deeploop.NewStack(c.stack("L_level", c.LLayers, c.PL, c.AlphaL, c.BetaL), t, lecun)
	if c.OneNetwork() {
		m.H = m.L
	}
	m.HInit, m.LInit = kernel.Alloc(t, d), kernel.Alloc(t, d)
	draw(m.HInit, 1)
	draw(m.LInit, 1)
	return m, nil
}

// Positions returns P+T, the length of the states.
func (c Config) Positions() int { return c.SeqLen + c.PuzzleEmbLen() }

// EffectiveDepth returns N of the residual rule, the blocks that count
// (architectures.md A.7, G.8): paper K_H + C_L·K_L, those of a cycle; code those
// with gradient, which is K_H + K_L in HRM and the cycle in TRM; forward
// C·(K_H + C_L·K_L). TRM's K_H is K_L.
func (c Config) EffectiveDepth() int {
	h, l := c.Blocks(deeploop.H), c.Blocks(deeploop.L)
	cycle := h + c.LCycles*l
	switch {
	case c.NgMode == NgForward:
		return c.HCycles * cycle
	case c.NgMode == NgCode && !c.OneNetwork():
		return h + l
	}
	return cycle
}

// stackNames are those of the reference's modules (sapientinc/HRM,
// models/layers.py) under a module's name; the reference has no gains.
func stackNames(module string) deeploop.Names {
	return deeploop.Names{
		Block: module + ".layers.%d.",
		QKV:   "self_attn.qkv_proj.weight", O: "self_attn.o_proj.weight",
		GateUp: "mlp.gate_up_proj.weight", Down: "mlp.down_proj.weight",
		MixGateUp: "mlp_t.gate_up_proj.weight", MixDown: "mlp_t.down_proj.weight",
		AttnIn: "attn_in_norm.weight", AttnOut: "attn_norm.weight",
		MLPIn: "mlp_in_norm.weight", MLPOut: "mlp_norm.weight",
		QNorm: "self_attn.q_norm.weight", KNorm: "self_attn.k_norm.weight",
		Final: module + ".norm.weight",
	}
}

func (c Config) stack(name string, blocks int, p, alpha, beta float64) deeploop.StackConfig {
	var mix deeploop.Mix
	if c.MLPT {
		mix = deeploop.Mix{T: c.Positions(), F: c.MixWidth()}
	}
	return deeploop.StackConfig{
		Mix: mix, Names: stackNames(name), Blocks: blocks, D: c.HiddenSize, F: c.MLPWidth(),
		Placement: deeploop.Placement(c.Placement), InnerNorm: c.InnerNorm, Gain: c.NormGain,
		Eps: c.RMSNormEps, Rule: deeploop.Rule{P: p, N: c.EffectiveDepth()},
		Alpha: alpha, Beta: beta, SwiGLUBeta: c.SwiGLUBeta,
	}
}

// Params lists what Adam trains, in the reference's order.
func (m *Model) Params() []*graph.Param {
	ps := []*graph.Param{m.EmbedTokens, m.LMHead, m.QHead, m.QHeadBias}
	for _, p := range []*graph.Param{m.EmbedPos, m.InputGain} {
		if p != nil {
			ps = append(ps, p)
		}
	}
	if m.H != m.L {
		ps = append(ps, m.H.Params()...)
	}
	return append(ps, m.L.Params()...)
}

// ResidualReport tells the residual rule in force, one line per stack.
func (m *Model) ResidualReport() []string {
	line := func(name string, s *deeploop.Stack) string {
		return fmt.Sprintf("%s: %s, placement %s, N=%d, alpha=%.4g, beta=%.4g",
			name, wording.Count(len(s.Blocks), "block"), s.Residual.Placement, s.Rule.N, s.Residual.Alpha, s.Beta)
	}
	if m.H == m.L {
		return []string{line("H and L", m.L)}
	}
	return []string{line("H", m.H), line("L", m.L)}
}

func (m *Model) shape(batch int) kernel.AttentionShape {
	return kernel.AttentionShape{
		B: batch, T: m.Config.Positions(), N: m.Config.NumHeads, K: m.Config.HeadDim(), Cos: m.cos, Sin: m.sin,
	}
}

// embed is x[B*(P+T), D]. puzzle [B, PuzzleEmbDim] holds the task embeddings
// of the rows, nil without. Learned positions are added to the embedding and
// the sum is scaled by 1/√2 more, as in the reference.
func (m *Model) embed(b *graph.Builder, ids []int32, puzzle *graph.Param, batch int) *graph.Node {
	scale := math.Sqrt(float64(m.Config.HiddenSize))
	if m.EmbedPos != nil {
		scale *= math.Sqrt(0.5)
	}
	x := ops.Embed(b, ops.Embedding{
		Table: m.EmbedTokens, Puzzle: puzzle, Pos: m.EmbedPos, IDs: ids,
		Batch: batch, T: m.Config.SeqLen, Prefix: m.Config.PuzzleEmbLen(), Scale: scale,
	})
	if m.Config.InputRMS {
		x = ops.ResidualNorm(b, x, nil, m.InputGain, 1, m.Config.RMSNormEps)
	}
	return x
}

// callL is z_L <- L(z_L + (z_H + x)).
func (m *Model) callL(b *graph.Builder, zL, zH, x *graph.Node, batch int) *graph.Node {
	return m.L.Forward(b, m.injectL(b, zL, zH, x), m.shape(batch))
}

func (m *Model) injectL(b *graph.Builder, zL, zH, x *graph.Node) *graph.Node {
	return ops.Inject(b, zH, x, zL)
}

// callH is z_H <- H(z_H + z_L).
func (m *Model) callH(b *graph.Builder, zH, zL *graph.Node, batch int) *graph.Node {
	return m.H.Forward(b, m.injectH(b, zH, zL), m.shape(batch))
}

func (m *Model) injectH(b *graph.Builder, zH, zL *graph.Node) *graph.Node {
	return ops.Inject(b, zH, zL)
}

// callHFirst is position 0 of each row of callH, [B, D].
func (m *Model) callHFirst(b *graph.Builder, zH, zL *graph.Node, batch int) *graph.Node {
	shape := m.shape(batch)
	shape.Queries = 1
	return m.H.Forward(b, m.injectH(b, zH, zL), shape)
}

// q is [B, 2]: halt and continue logits of each row, from position 0 of zH,
// whose rows may have more positions than that.
func (m *Model) q(b *graph.Builder, zH *graph.Node, batch int) *graph.Node {
	return ops.QHead(b, zH, m.QHead, m.QHeadBias, batch)
}
