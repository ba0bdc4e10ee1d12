package hrm

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"deeploop/deeploop"
	"deeploop/internal/kernel"
)

// ConfigError is a configuration value that cannot work.
type ConfigError struct {
	Key   string // dotted key as in the file, e.g. arch.num_heads
	Found any
	Want  string
}

func (e *ConfigError) Error() string {
	return fmt.Sprintf("check configuration: %s is %v, expected %s", e.Key, e.Found, e.Want)
}

// BadInput marks the error as the user's, for exit code 2.
func (e *ConfigError) BadInput() bool { return true }

// ConfigKey returns the dotted key the error is about, for the file and line.
func (e *ConfigError) ConfigKey() string { return e.Key }

// Validate checks the architecture; the dataset's sizes have ValidateSizes.
func (c Config) Validate() error {
	k := checks{prefix: "arch."}
	k.oneOf("name", c.Name, "hrm_v1", "hrm.hrm_act_v1@HierarchicalReasoningModel_ACTV1")
	k.oneOf("loss.name", c.Loss.Name, "act", "losses@ACTLossHead")
	k.oneOf("loss.loss_type", c.Loss.LossType, LossStablemax, LossSoftmax)
	k.real("halt_exploration_prob", c.HaltExplorationProb, 0, 1)
	k.whole("halt_max_steps", c.HaltMaxSteps, 1, math.MaxInt32)
	k.whole("H_cycles", c.HCycles, 1, 1<<16)
	k.whole("L_cycles", c.LCycles, 1, 1<<16)
	k.whole("H_layers", c.HLayers, 1, 1<<10)
	k.whole("L_layers", c.LLayers, 1, 1<<10)
	k.whole("hidden_size", c.HiddenSize, 1, 1<<16)
	k.whole("num_heads", c.NumHeads, 1, 1<<16)
	k.positive("expansion", c.Expansion, 1<<10)
	k.whole("puzzle_emb_ndim", c.PuzzleEmbDim, 0, 1<<20)
	k.oneOf("pos_encodings", c.PosEncodings, PosRope, PosLearned)
	k.positive("rms_norm_eps", c.RMSNormEps, 1)
	k.positive("rope_theta", c.RopeTheta, math.MaxFloat32)
	k.oneOf("placement", c.Placement, PlacementPostNorm, PlacementDeepNorm, PlacementDeepLoop, PlacementPreNorm)
	k.oneOf("ng_mode", c.NgMode, NgPaper, NgCode, NgForward)
	k.oneOf("swiglu_beta", c.SwiGLUBeta, SwiGLUBetaAll, SwiGLUBetaUpDown, SwiGLUBetaDown)
	if k.err != nil {
		return k.err
	}
	if c.HiddenSize%c.NumHeads != 0 {
		return &ConfigError{"arch.num_heads", c.NumHeads, fmt.Sprintf("a divisor of hidden_size %d", c.HiddenSize)}
	}
	if c.PosEncodings == PosRope && c.HeadDim()%2 != 0 {
		return &ConfigError{"arch.num_heads", c.NumHeads, fmt.Sprintf(
			"an even head width for pos_encodings rope: hidden_size %d over num_heads is %d", c.HiddenSize, c.HeadDim())}
	}
	if c.MLPWidth() == 0 {
		return &ConfigError{"arch.expansion", c.Expansion, fmt.Sprintf("an MLP of at least one unit at hidden_size %d", c.HiddenSize)}
	}
	return c.validateResidual(&k)
}

// validateResidual checks the keys of the residual rule, and that none is set
// where it would be ignored.
func (c Config) validateResidual(k *checks) error {
	scaled := deeploop.Placement(c.Placement).Scaled()
	for _, f := range []struct {
		key string
		v   float64
	}{
		{"p_H", c.PH}, {"p_L", c.PL},
		{"alpha_H", c.AlphaH}, {"alpha_L", c.AlphaL}, {"beta_H", c.BetaH}, {"beta_L", c.BetaL},
	} {
		k.real(f.key, f.v, 0, 1<<20)
		if f.v != 0 && !scaled {
			k.fail(f.key, f.v, "0, since placement "+c.Placement+" has no residual scaling (deepnorm and deeploop have)")
		}
	}
	if c.InnerNorm && c.Placement != PlacementDeepLoop {
		k.fail("inner_norm", true, "false with placement "+c.Placement+" (only deeploop has inner norms)")
	}
	return k.err
}

// ValidateSizes checks the sizes that come from the dataset.
func (c Config) ValidateSizes() error {
	var k checks
	k.whole("seq_len", c.SeqLen, 1, 1<<20)
	k.whole("vocab_size", c.VocabSize, 2, 1<<20)
	k.whole("num_puzzle_identifiers", c.NumPuzzleIdentifiers, 1, math.MaxInt32)
	return k.err
}

// Validate checks every key of the run, the architecture's too.
func (c TrainConfig) Validate() error {
	if err := c.Arch.Validate(); err != nil {
		return err
	}
	const most = math.MaxInt32
	var k checks
	k.whole("global_batch_size", c.GlobalBatchSize, 1, most)
	k.whole("steps", c.Steps, 0, most)
	k.whole("epochs", c.Epochs, 1, most)
	k.whole("eval_interval", c.EvalInterval, 0, most)
	k.whole("eval_steps", c.EvalSteps, 0, most)
	k.whole("eval_augmentations", c.EvalAugmentations, -1, most)
	k.whole("checkpoint_interval", c.CheckpointInterval, 0, most)
	k.whole("keep", c.Keep, 0, most)
	k.whole("threads", c.Threads, 0, kernel.MaxThreads)
	k.whole("seed", c.Seed, 0, most)
	k.real("lr", c.LR, 0, 10)
	k.real("lr_min_ratio", c.LRMinRatio, 0, 1)
	k.whole("lr_warmup_steps", c.LRWarmupSteps, 0, most)
	k.below("beta1", c.Beta1, 1)
	k.below("beta2", c.Beta2, 1)
	k.real("weight_decay", c.WeightDecay, 0, 1000)
	k.real("puzzle_emb_weight_decay", c.PuzzleEmbWeightDecay, 0, 1000)
	k.real("puzzle_emb_lr", c.PuzzleEmbLR, 0, 10)
	k.below("ema_rate", c.EMARate, 1)
	k.oneOf("precision", c.Precision, "fp32", "bf16", "auto")
	k.oneOf("kernel", c.Kernel, "ref", "c", "avx2", "avx512", "amx", "auto")
	if k.err == nil && c.Steps == 0 && c.Epochs%c.EpochsPerPass() != 0 {
		k.fail("eval_interval", c.EvalInterval, fmt.Sprintf("a divisor of epochs %d", c.Epochs))
	}
	return k.err
}

// checks keeps the first failure.
type checks struct {
	prefix string
	err    error
}

func (k *checks) fail(key string, found any, want string) {
	if k.err == nil {
		k.err = &ConfigError{Key: k.prefix + key, Found: found, Want: want}
	}
}

func (k *checks) whole(key string, v, lo, hi int) {
	if v < lo || v > hi {
		k.fail(key, v, fmt.Sprintf("a whole number from %d to %d", lo, hi))
	}
}

func (k *checks) real(key string, v, lo, hi float64) {
	if !(v >= lo && v <= hi) {
		k.fail(key, v, fmt.Sprintf("a number from %g to %g", lo, hi))
	}
}

func (k *checks) positive(key string, v, hi float64) {
	if !(v > 0 && v <= hi) {
		k.fail(key, v, fmt.Sprintf("a number above 0 and at most %g", hi))
	}
}

func (k *checks) below(key string, v, hi float64) {
	if !(v >= 0 && v < hi) {
		k.fail(key, v, fmt.Sprintf("a number from 0 to below %g", hi))
	}
}

func (k *checks) oneOf(key, v string, allowed ...string) {
	if !slices.Contains(allowed, v) {
		k.fail(key, fmt.Sprintf("%q", v), "one of "+strings.Join(allowed, ", "))
	}
}
