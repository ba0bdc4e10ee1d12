package lm

import (
	"cmp"
	"math"

	"deeploop/deeploop"
)

// Config is the architecture: what must be known to rebuild a model, and what
// travels in a checkpoint. Letters are those of architectures.md: K layers, R
// loops, d hidden_size, p the exponent of the residual rule.
type Config struct {
	Layers     int `yaml:"layers" json:"layers" help:"stored blocks K"`
	Loops      int `yaml:"loops" json:"loops" help:"how often the stored blocks run, R"`
	HiddenSize int `yaml:"hidden_size" json:"hidden_size" help:"width of the states, d"`
	NumHeads   int `yaml:"num_heads" json:"num_heads" help:"attention heads; must divide hidden_size"`
	Context    int `yaml:"context" json:"context" help:"tokens of a training sequence, and the most a text may have"`

	MLP      string `yaml:"mlp" json:"mlp" help:"swiglu, gelu (GPT-2's tanh form), gelu_erf or relu2"`
	MLPWidth int    `yaml:"mlp_width" json:"mlp_width" help:"width of the MLP; 0 is 8/3 of hidden_size rounded down for swiglu and 4 times it for the others"`

	Placement  string  `yaml:"placement" json:"placement" help:"deeploop, deepnorm, prenorm (the paper's base) or postnorm"`
	P          float64 `yaml:"p" json:"p" help:"exponent of alpha = (2KR)^p and beta = (8KR)^-p; follows placement unless set"`
	Alpha      float64 `yaml:"alpha" json:"alpha" help:"alpha in place of the rule's; 0 is the rule's"`
	Beta       float64 `yaml:"beta" json:"beta" help:"beta in place of the rule's; 0 is the rule's"`
	InnerNorm  bool    `yaml:"inner_norm" json:"inner_norm" help:"norm on a branch's input (deeploop only); follows placement unless set"`
	NormGain   bool    `yaml:"norm_gain" json:"norm_gain" help:"learned gains in the norms"`
	EmbedNorm  bool    `yaml:"embed_norm" json:"embed_norm" help:"RMSNorm on the token embedding"`
	FinalNorm  string  `yaml:"final_norm" json:"final_norm" help:"RMSNorm before the head: on, off or auto (on with prenorm)"`
	QKNorm     bool    `yaml:"qk_norm" json:"qk_norm" help:"learned RMSNorm on q and k of each head"`
	SwiGLUBeta string  `yaml:"swiglu_beta" json:"swiglu_beta" help:"MLP matrices that get beta: all, up_down or down"`

	RMSNormEps float64 `yaml:"rms_norm_eps" json:"rms_norm_eps" help:"added to the mean square inside every norm"`
	RopeTheta  float64 `yaml:"rope_theta" json:"rope_theta" help:"base of the rotary angles"`

	Init      string `yaml:"init" json:"init" help:"ddl (embedding 0.02, others 0.5/sqrt(d)), gpt2 (0.02) or xavier"`
	InitDepth string `yaml:"init_depth" json:"init_depth" help:"blocks L that prenorm's 1/sqrt(L) on output projections counts: executed or stored"`

	VocabMultiple int `yaml:"vocab_multiple" json:"vocab_multiple" help:"round the tokenizer's vocabulary up to a multiple of this"`
	// VocabSize is V, the tokenizer's vocabulary rounded up.
	VocabSize int `yaml:"-" json:"vocab_size"`
}

// Values of the enumerated keys.
const (
	MLPSwiGLU  = "swiglu"
	MLPGELU    = "gelu"
	MLPGELUErf = "gelu_erf"
	MLPReLU2   = "relu2"

	InitDDL    = "ddl"
	InitGPT2   = "gpt2"
	InitXavier = "xavier"

	DepthExecuted = "executed"
	DepthStored   = "stored"

	On, Off, Auto = "on", "off", "auto"
)

// HeadDim returns the width of one attention head.
func (c Config) HeadDim() int { return c.HiddenSize / c.NumHeads }

// Width returns F, the width of the MLP.
func (c Config) Width() int {
	switch {
	case c.MLPWidth > 0:
		return c.MLPWidth
	case c.MLP == MLPSwiGLU:
		return 8 * c.HiddenSize / 3
	}
	return 4 * c.HiddenSize
}

// Depth returns N = K·R, the executed blocks.
func (c Config) Depth() int { return c.Layers * c.Loops }

// HasFinalNorm reports whether a norm stands before the head.
func (c Config) HasFinalNorm() bool {
	return c.FinalNorm == On || c.FinalNorm == Auto && c.Placement == string(deeploop.PreNorm)
}

// Vocabulary sets VocabSize for a tokenizer with n tokens.
func (c *Config) Vocabulary(n int) {
	m := max(c.VocabMultiple, 1)
	c.VocabSize = (n + m - 1) / m * m
}

// NumParams returns the number of trained parameters. The embedding, which is
// also the head, counts once.
func (c Config) NumParams() int {
	d := c.HiddenSize
	n := c.VocabSize*d + c.Layers*c.blockWeights()
	if c.QKNorm {
		n += c.Layers * 2 * c.HeadDim()
	}
	if c.NormGain {
		norms := 2
		if c.InnerNorm {
			norms = 4
		}
		n += c.Layers * norms * d
		if c.EmbedNorm {
			n += d
		}
		if c.HasFinalNorm() {
			n += d
		}
	}
	return n
}

// blockWeights is the number of weights in the matrices of a block.
func (c Config) blockWeights() int {
	d, f := c.HiddenSize, c.Width()
	if c.MLP == MLPSwiGLU {
		return 4*d*d + 3*f*d
	}
	return 4*d*d + 2*f*d
}

// hiddenStd is the standard deviation of a block's matrix [out, in] before
// beta. Under ddl those of prenorm that write to the residual stream get 1/√L
// more, under gpt2 1/√(2L), where L is init_depth's; with the other placements
// beta replaces it (A.5). xavier has no such factor (B).
func (c Config) hiddenStd(out, in int, residual bool) float64 {
	depth := c.Layers
	if c.InitDepth == DepthExecuted {
		depth = c.Depth()
	}
	std := 0.5 / math.Sqrt(float64(c.HiddenSize))
	switch c.Init {
	case InitGPT2:
		std = 0.02
		depth *= 2
	case InitXavier:
		return math.Sqrt(2 / float64(out+in))
	}
	if residual && c.Placement == string(deeploop.PreNorm) {
		std /= math.Sqrt(float64(depth))
	}
	return std
}

// embedStd is that of the embedding (A.5, B).
const embedStd = 0.02

// AtLoops returns the architecture with another loop count for evaluation.
// alpha stays that of training, whatever the rule would give, and so does beta,
// which the weights have been multiplied by.
func (c Config) AtLoops(loops int) Config {
	if deeploop.Placement(c.Placement).Scaled() {
		rule := deeploop.Rule{P: c.P, N: c.Depth()}
		c.Alpha, c.Beta = cmp.Or(c.Alpha, rule.Alpha()), cmp.Or(c.Beta, rule.Beta())
	}
	c.Loops = loops
	return c
}
