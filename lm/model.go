package lm

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

// Model is GPT-MHA-RoPE with looped blocks (DeepLoop, arXiv 2607.13491;
// architectures.md A.1):
//
//	x = RMSNorm(E[tokens])
//	x <- block_K( … block_1(x))     R times
//	logits = E · x                  with an RMSNorm before it under prenorm
//
// The methods embed, round and final are these lines; logits exist only within
// ops.HeadLoss, a chunk of rows at a time. Sublayers are those of
// deeploop.Block. The embedding is also the head.
type Model struct {
	Config Config
	// Act is the type of activations; weights are Act.Master().
	Act kernel.DType

	Embed     *graph.Param // E [V, D]
	EmbedGain *graph.Param // [1, D], nil without
	FinalGain *graph.Param // [1, D], nil without
	Blocks    *deeploop.Stack

	cos, sin kernel.Buf // [context, head width/2]
}

// names are those of the recorded reference numbers, and of exported files.
var names = deeploop.Names{
	Block: "blocks.%d.",
	QKV:   "attn.qkv.weight", O: "attn.out.weight", GateUp: "mlp.gate_up.weight", Down: "mlp.down.weight",
	AttnIn: "attn.norm_in.gain", AttnOut: "attn.norm_out.gain", MLPIn: "mlp.norm_in.gain", MLPOut: "mlp.norm_out.gain",
	QNorm: "attn.q_norm.gain", KNorm: "attn.k_norm.gain",
}

// NewModel draws a model. The configuration must have a VocabSize. Weights of
// one seed are the same for every placement before beta, kernel and precision.
func NewModel(c Config, act kernel.DType, seed uint64) (*Model, error) {
	s := rng.NewStream(seed, "weights")
	return newModel(c, act, func(w kernel.Buf, std float64) { fillNormal(s, w, std) })
}

// fillNormal draws normal numbers with a standard deviation.
func fillNormal(s *rng.Stream, w kernel.Buf, std float64) {
	if w.Type() == kernel.Float32 {
		for x := w.Float32s(); len(x) > 0; x = x[1:] {
			x[0] = float32(s.NormFloat64() * std)
		}
		return
	}
	for i := range w.Len() {
		w.SetAt(i, s.NormFloat64()*std)
	}
}

// newModel makes a model with matrices filled by draw.
func newModel(c Config, act kernel.DType, draw func(w kernel.Buf, std float64)) (*Model, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	if c.VocabSize < 1 || c.VocabSize > 1<<24 {
		return nil, &ConfigError{Key: "vocab_size", Found: c.VocabSize, Want: "the vocabulary of a tokenizer"}
	}
	t, d := act.Master(), c.HiddenSize
	m := &Model{Config: c, Act: act, Embed: graph.NewParam("embed.weight", t, c.VocabSize, d)}
	draw(m.Embed.Data, embedStd)
	if c.EmbedNorm && c.NormGain {
		m.EmbedGain = deeploop.Gain("embed_norm.gain", t, d)
	}
	if c.HasFinalNorm() && c.NormGain {
		m.FinalGain = deeploop.Gain("final_norm.gain", t, d)
	}
	m.Blocks = deeploop.NewStack(c.stack(), t, func(p *graph.Param, fanOut int, residual bool) {
		draw(p.Data, c.hiddenStd(fanOut, p.Cols, residual))
	})
	m.cos, m.sin = kernel.RopeTables(t, c.Context, c.HeadDim(), c.RopeTheta)
	return m, nil
}

func (c Config) stack() deeploop.StackConfig {
	mlp := deeploop.MLP{Plain: c.MLP != MLPSwiGLU}
	switch c.MLP {
	case MLPGELU:
		mlp.Activation = kernel.GELU
	case MLPGELUErf:
		mlp.Activation = kernel.GELUErf
	case MLPReLU2:
		mlp.Activation = kernel.ReLUSquared
	}
	return deeploop.StackConfig{
		Names: names, Blocks: c.Layers, D: c.HiddenSize, F: c.Width(),
		Placement: deeploop.Placement(c.Placement), InnerNorm: c.InnerNorm, Gain: c.NormGain,
		Eps: c.RMSNormEps, Rule: deeploop.Rule{P: c.P, N: c.Depth()},
		Alpha: c.Alpha, Beta: c.Beta, SwiGLUBeta: c.SwiGLUBeta,
		MLP: mlp, HeadDim: c.HeadDim(), QKNorm: c.QKNorm, OpenEnd: true,
	}
}

// Params lists the trained parameters.
func (m *Model) Params() []*graph.Param {
	ps := []*graph.Param{m.Embed}
	if m.EmbedGain != nil {
		ps = append(ps, m.EmbedGain)
	}
	ps = append(ps, m.Blocks.Params()...)
	if m.FinalGain != nil {
		ps = append(ps, m.FinalGain)
	}
	return ps
}

// ResidualReport tells the residual rule in force.
func (m *Model) ResidualReport() string {
	s := m.Blocks
	return fmt.Sprintf("%s, %s, placement %s, N=%d, alpha=%.4g, beta=%.4g",
		wording.Count(m.Config.Layers, "block"), wording.Count(m.Config.Loops, "loop"), s.Residual.Placement, s.Rule.N, s.Residual.Alpha, s.Beta)
}

// shape is that of batch sequences of t tokens from the first position on.
func (m *Model) shape(batch, t int) kernel.AttentionShape {
	half := m.Config.HeadDim() / 2
	return kernel.AttentionShape{
		B: batch, T: t, N: m.Config.NumHeads, K: m.Config.HeadDim(), Causal: true,
		Cos: m.cos.Slice(0, t*half), Sin: m.sin.Slice(0, t*half),
	}
}

// embed is x[B*T, D] = RMSNorm(E[ids]).
func (m *Model) embed(b *graph.Builder, ids []int32) *graph.Node {
	x := ops.Embed(b, ops.Embedding{Table: m.Embed, IDs: ids, Batch: 1, T: len(ids), Scale: 1})
	if m.Config.EmbedNorm {
		x = ops.ResidualNorm(b, x, nil, m.EmbedGain, 1, m.Config.RMSNormEps)
	}
	return x
}

// round runs the stored blocks once.
func (m *Model) round(b *graph.Builder, x *graph.Node, batch, t int) *graph.Node {
	return m.Blocks.Forward(b, x, m.shape(batch, t))
}

// final is what the head reads.
func (m *Model) final(b *graph.Builder, x *graph.Node) *graph.Node {
	if !m.Config.HasFinalNorm() {
		return x
	}
	return ops.ResidualNorm(b, x, nil, m.FinalGain, 1, m.Config.RMSNormEps)
}

// BitsPerByte turns a loss in nats per token into bits per byte of text.
func BitsPerByte(nats float64, tokens, bytes int) float64 {
	return nats / math.Ln2 * float64(tokens) / float64(bytes)
}
