package hrm

import (
	"math"

	"deeploop/deeploop"
)

// Config is the architecture: what must be known to rebuild a model, and what
// travels in a checkpoint. Keys are the references' (section "arch" of
// config/arch/hrm_v1.yaml in sapientinc/HRM and of config/arch/trm.yaml in
// SamsungSAILMontreal/TinyRecursiveModels); those of the residual rule are
// ours (architectures.md A.7, A.9). The last three fields are the dataset's.
type Config struct {
	Name string     `yaml:"name" json:"name" flag:"arch-name" help:"architecture: hrm_v1, trm, or the reference's class name"`
	Loss LossConfig `yaml:"loss" json:"loss"`

	HaltExplorationProb float64 `yaml:"halt_exploration_prob" json:"halt_exploration_prob" help:"probability that a row draws a minimum number of segments"`
	HaltMaxSteps        int     `yaml:"halt_max_steps" json:"halt_max_steps" help:"segments after which a row halts; evaluation always runs all of them"`

	HCycles int `yaml:"H_cycles" json:"H_cycles" help:"slow cycles per segment"`
	LCycles int `yaml:"L_cycles" json:"L_cycles" help:"fast calls per slow cycle"`
	HLayers int `yaml:"H_layers" json:"H_layers" help:"blocks of the slow module; 0 with trm"`
	LLayers int `yaml:"L_layers" json:"L_layers" help:"blocks of the fast module, of trm's one network"`

	HiddenSize     int     `yaml:"hidden_size" json:"hidden_size" help:"width of the states"`
	NumHeads       int     `yaml:"num_heads" json:"num_heads" help:"attention heads; must divide hidden_size"`
	Expansion      float64 `yaml:"expansion" json:"expansion" help:"MLP expansion; the width is 2/3 of it times hidden_size, rounded up to a multiple of 256"`
	PuzzleEmbDim   int     `yaml:"puzzle_emb_ndim" json:"puzzle_emb_ndim" help:"numbers in a task embedding; 0 is none; follows hidden_size unless set"`
	MLPT           bool    `yaml:"mlp_t" json:"mlp_t,omitempty" help:"trm: an MLP over the positions, a fixed number of them, in the place of attention"`
	PuzzleEmbSlots int     `yaml:"puzzle_emb_len" json:"puzzle_emb_len,omitempty" help:"positions of a task embedding; 0 is as many as it fills; follows name unless set"`
	NoACTContinue  bool    `yaml:"no_ACT_continue" json:"no_ACT_continue,omitempty" help:"halt where q_halt is above 0, with no q_continue to learn; follows name unless set"`
	PosEncodings   string  `yaml:"pos_encodings" json:"pos_encodings" help:"rope or learned; with trm also none; follows mlp_t unless set"`
	RMSNormEps     float64 `yaml:"rms_norm_eps" json:"rms_norm_eps" help:"added to the mean square inside every norm"`
	RopeTheta      float64 `yaml:"rope_theta" json:"rope_theta" help:"base of the rotary angles"`

	Placement  string  `yaml:"placement" json:"placement" help:"postnorm (published HRM), deepnorm, deeploop or prenorm"`
	PH         float64 `yaml:"p_H" json:"p_H" help:"exponent of alpha and beta in the slow module; follows placement unless set"`
	PL         float64 `yaml:"p_L" json:"p_L" help:"exponent of alpha and beta in the fast module; follows placement unless set"`
	NgMode     string  `yaml:"ng_mode" json:"ng_mode" help:"visits that count as depth: paper, code or forward"`
	InnerNorm  bool    `yaml:"inner_norm" json:"inner_norm" help:"norm on a branch's input (deeploop only); follows placement unless set"`
	InputRMS   bool    `yaml:"input_rms" json:"input_rms" help:"RMSNorm on the token and task embedding"`
	NormGain   bool    `yaml:"norm_gain" json:"norm_gain" help:"learned gains in the norms"`
	SwiGLUBeta string  `yaml:"swiglu_beta" json:"swiglu_beta" help:"MLP matrices that get beta: all, up_down or down"`
	AlphaH     float64 `yaml:"alpha_H" json:"alpha_H" help:"alpha of the slow module in place of the rule's; 0 is the rule's"`
	AlphaL     float64 `yaml:"alpha_L" json:"alpha_L" help:"alpha of the fast module in place of the rule's; 0 is the rule's"`
	BetaH      float64 `yaml:"beta_H" json:"beta_H" help:"beta of the slow module in place of the rule's; 0 is the rule's"`
	BetaL      float64 `yaml:"beta_L" json:"beta_L" help:"beta of the fast module in place of the rule's; 0 is the rule's"`

	// SeqLen is the number of grid tokens T (task slots come on top).
	SeqLen int `yaml:"-" json:"seq_len"`
	// VocabSize is the number of tokens V: 12 for ARC (PAD, EOS, ten colours).
	VocabSize int `yaml:"-" json:"vocab_size"`
	// NumPuzzleIdentifiers is the number of rows of the task-embedding table.
	NumPuzzleIdentifiers int `yaml:"-" json:"num_puzzle_identifiers"`
}

// LossConfig is the section "arch.loss".
type LossConfig struct {
	Name     string `yaml:"name" json:"name" flag:"loss-name" help:"loss: act, or the reference's class name"`
	LossType string `yaml:"loss_type" json:"loss_type" help:"stablemax_cross_entropy or softmax_cross_entropy"`
}

// Values of the enumerated keys.
const (
	LossStablemax = "stablemax_cross_entropy"
	LossSoftmax   = "softmax_cross_entropy"

	PosRope    = "rope"
	PosLearned = "learned"
	PosNone    = "none" // TRM's alone

	PlacementPostNorm = string(deeploop.PostNorm)
	PlacementDeepNorm = string(deeploop.DeepNorm)
	PlacementDeepLoop = string(deeploop.DeepLoop)
	PlacementPreNorm  = string(deeploop.PreNorm)

	NgPaper   = "paper"
	NgCode    = "code"
	NgForward = "forward"

	SwiGLUBetaAll    = deeploop.SwiGLUBetaAll
	SwiGLUBetaUpDown = deeploop.SwiGLUBetaUpDown
	SwiGLUBetaDown   = deeploop.SwiGLUBetaDown
)

// HeadDim returns K, the width of one attention head.
func (c Config) HeadDim() int { return c.HiddenSize / c.NumHeads }

// MLPWidth returns F: 2/3·expansion·hidden_size rounded to a whole number
// (halves to even), then up to a multiple of 256 (reference models/layers.py).
func (c Config) MLPWidth() int { return c.widthFor(c.HiddenSize) }

// MixWidth is MLPWidth of the MLP over positions, with their number in the
// place of hidden_size; 0 without mlp_t.
func (c Config) MixWidth() int {
	if !c.MLPT {
		return 0
	}
	return c.widthFor(c.Positions())
}

func (c Config) widthFor(in int) int {
	const multiple = 256
	w := int(math.RoundToEven(c.Expansion * float64(in) * 2 / 3))
	return (w + multiple - 1) / multiple * multiple
}

// PuzzleEmbLen returns P, the positions a task embedding takes in front of
// the grid: puzzle_emb_len, or where that is 0 puzzle_emb_ndim over
// hidden_size, rounded up. What the embedding does not fill is zeros.
func (c Config) PuzzleEmbLen() int {
	if c.PuzzleEmbSlots > 0 {
		return c.PuzzleEmbSlots
	}
	return (c.PuzzleEmbDim + c.HiddenSize - 1) / c.HiddenSize
}

// NumParams returns the number of parameters Adam trains: embeddings, blocks,
// head and q head, with learned positions and gains where they are on. The
// task-embedding table and the two initial states are not counted. It depends
// on VocabSize and, with learned positions or mlp_t, on SeqLen.
func (c Config) NumParams() int {
	d, f := c.HiddenSize, c.MLPWidth()
	block, first := 3*d*d+d*d+2*f*d+f*d, d // qkv, o, gate and up, down
	if c.MLPT {
		block, first = 3*c.MixWidth()*c.Positions()+3*f*d, c.Positions()
	}
	if c.NormGain {
		block += c.NormsPerBlock() / 2 * (first + d)
	}
	n := (c.HLayers+c.LLayers)*block + 2*c.VocabSize*d + 2*d + 2
	if c.NormGain && c.Placement == PlacementPreNorm {
		n += c.stacks() * d // one closing norm each
	}
	if c.NormGain && c.InputRMS {
		n += d
	}
	if c.PosEncodings == PosLearned {
		n += (c.SeqLen + c.PuzzleEmbLen()) * d
	}
	return n
}

// NormsPerBlock returns how many norms a block has: one per sublayer, two
// with the inner norm.
func (c Config) NormsPerBlock() int {
	if c.InnerNorm {
		return 4
	}
	return 2
}
