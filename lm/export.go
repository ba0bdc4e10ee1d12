package lm

import (
	"fmt"
	"io"

	"deeploop/internal/kernel"
	"deeploop/internal/safetensors"
)

// Files of an exported model.
const (
	ExportTensors   = "model.safetensors"
	ExportConfig    = "config.json"
	ExportTokenizer = "tokenizer.json"
)

// ExportArchitecture is the value of the key architecture.
const ExportArchitecture = "deeploop-lm"

// ExportVersion is that of the layout. Another one is refused.
const ExportVersion = 1

// Exported is config.json of an exported model: the keys of Config, what
// follows from them, and where the weights come from. With the tensors it is
// all that another program needs:
//
//	x = RMSNorm(E[tokens])                         embed_norm
//	R times: for each of the K blocks
//	  attention, then MLP, each f as placement says:
//	    deeploop  x <- RMSNorm_out(alpha·x + f(RMSNorm_in(x)))   without RMSNorm_in unless inner_norm
//	    deepnorm  x <- RMSNorm_out(alpha·x + f(x))
//	    postnorm  x <- RMSNorm_out(x + f(x))
//	    prenorm   x <- x + f(RMSNorm_in(x))
//	logits = RMSNorm(x)·Eᵀ                         resolved.final_norm
//
// RMSNorm divides by sqrt(mean of squares + rms_norm_eps) and multiplies by a
// gain where norm_gain. Attention is causal with scale 1/sqrt(head_dim); q and
// k of each head go through an RMSNorm with a gain where qk_norm, then through
// a rotation of element i with i + head_dim/2 by position·rope_theta^(-2i/head_dim).
// The MLP is down·(silu(gate·x)*(up·x)) with swiglu, else down·act(up·x), where
// act(u) is
//
//	gelu      u/2·(1 + tanh(√(2/π)·(u + 0.044715·u³)))   GPT-2's
//	gelu_erf  u/2·(1 + erf(u/√2))
//	relu2     max(u, 0)²
//
// and silu(u) = u/(1 + exp(-u)).
//
// Tensors, linear weights [out, in]:
//
//	embed.weight [V, D], embed_norm.gain [D], final_norm.gain [D]
//	blocks.N.attn.qkv.weight [3D, D], rows q, k, v; blocks.N.attn.out.weight [D, D]
//	blocks.N.attn.q_norm.gain, k_norm.gain [head_dim]
//	blocks.N.mlp.gate_up.weight [2F, D], rows gate, up ([F, D], up alone, without gate)
//	blocks.N.mlp.down.weight [D, F]
//	blocks.N.attn.norm_in.gain, norm_out.gain, blocks.N.mlp.norm_in.gain, norm_out.gain [D]
//
// beta was applied when the weights were drawn and plays no part any more.
type Exported struct {
	Architecture string `json:"architecture"`
	Version      int    `json:"version"`
	Config
	Resolved Resolved `json:"resolved"`

	Tokenizer     string `json:"tokenizer"`      // byte, char or gpt2
	TokenizerSize int    `json:"tokenizer_size"` // its ids; vocab_size is rounded up
	Separator     int32  `json:"separator"`      // id between documents, -1 without

	Type    string `json:"dtype"`   // float32 or bfloat16
	Weights string `json:"weights"` // raw or ema
	Step    int    `json:"step"`    // of the training
	Program string `json:"program"` // that wrote the file
}

// Resolved is what follows from the other keys. Import compares it.
type Resolved struct {
	Alpha     float64 `json:"alpha"`
	Beta      float64 `json:"beta"`
	MLPWidth  int     `json:"mlp_width"`
	HeadDim   int     `json:"head_dim"`
	FinalNorm bool    `json:"final_norm"`
	NumParams int     `json:"num_params"`
}

// Resolved returns what follows from the architecture of m.
func (m *Model) Resolved() Resolved {
	c := m.Config
	return Resolved{
		Alpha: m.Blocks.Residual.Alpha, Beta: m.Blocks.Beta, MLPWidth: c.Width(), HeadDim: c.HeadDim(),
		FinalNorm: c.HasFinalNorm(), NumParams: c.NumParams(),
	}
}

// Names of the types of exported weights.
const (
	Float32Name  = "float32"
	BFloat16Name = "bfloat16"
)

// WriteTensors writes the weights as safetensors, in fp32 exactly or rounded to
// bf16.
func (m *Model) WriteTensors(w io.Writer, act kernel.DType) error {
	name := "F32"
	if act == kernel.BFloat16 {
		name = "BF16"
	}
	var entries []safetensors.Entry
	for _, p := range m.Params() {
		entries = append(entries, safetensors.Entry{Name: p.Name, DType: name, Shape: p.Shape()})
	}
	out, err := safetensors.NewWriter(w, map[string]string{"format": ExportArchitecture}, entries)
	if err != nil {
		return fmt.Errorf("write weights: %w", err)
	}
	for _, p := range m.Params() {
		b := p.Data
		if b.Type() != act {
			b = kernel.Alloc(act, b.Len())
			for i := range b.Len() {
				b.SetAt(i, p.Data.At(i))
			}
		}
		if _, err := out.Write(b.Bytes()); err != nil {
			return fmt.Errorf("write weights: %w", err)
		}
	}
	return out.Finish()
}
