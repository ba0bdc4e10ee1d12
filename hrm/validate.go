package hrm

import (
	"fmt"
	"math"
	"strings"

	"deeploop/deeploop"
	"deeploop/internal/check"
	"deeploop/internal/kernel"
)

// ConfigError is a configuration value that cannot work.
type ConfigError = check.Error

// Validate checks the architecture; the dataset's sizes have ValidateSizes.
func (c Config) Validate() error {
	k := check.Checks{Prefix: "arch."}
	k.OneOf("name", c.Name, NameHRM, NameTRM, referenceHRM, referenceTRM, referenceHRM2)
	k.OneOf("loss.name", c.Loss.Name, "act", "losses@ACTLossHead")
	k.OneOf("loss.loss_type", c.Loss.LossType, LossStablemax, LossSoftmax)
	k.Real("halt_exploration_prob", c.HaltExplorationProb, 0, 1)
	k.Whole("halt_max_steps", c.HaltMaxSteps, 1, math.MaxInt32)
	k.Whole("H_cycles", c.HCycles, 1, 1<<16)
	k.Whole("L_cycles", c.LCycles, 1, 1<<16)
	if c.OneNetwork() {
		if c.HLayers != 0 {
			k.Fail("H_layers", c.HLayers, "0 with name "+c.Name+", whose one network of L_layers blocks plays both roles")
		}
	} else {
		k.Whole("H_layers", c.HLayers, 1, 1<<10)
	}
	k.Whole("L_layers", c.LLayers, 1, 1<<10)
	k.Whole("hidden_size", c.HiddenSize, 1, 1<<16)
	k.Whole("num_heads", c.NumHeads, 1, 1<<16)
	k.Positive("expansion", c.Expansion, 1<<10)
	k.Whole("puzzle_emb_ndim", c.PuzzleEmbDim, 0, 1<<20)
	k.Whole("puzzle_emb_len", c.PuzzleEmbSlots, 0, 1<<16)
	positions := []string{PosRope, PosLearned}
	if c.OneNetwork() {
		positions = append(positions, PosNone)
	}
	k.OneOf("pos_encodings", c.PosEncodings, positions...)
	if c.MLPT && !c.OneNetwork() {
		k.Fail("mlp_t", true, "false with name "+c.Name+" (only trm has it)")
	}
	if c.MLPT && c.PosEncodings == PosRope {
		k.Fail("pos_encodings", c.PosEncodings, PosNone+" or "+PosLearned+" with mlp_t, which has no attention to rotate for")
	}
	k.Positive("rms_norm_eps", c.RMSNormEps, 1)
	k.Positive("rope_theta", c.RopeTheta, math.MaxFloat32)
	k.OneOf("placement", c.Placement, PlacementPostNorm, PlacementDeepNorm, PlacementDeepLoop, PlacementPreNorm)
	k.OneOf("ng_mode", c.NgMode, NgPaper, NgCode, NgForward)
	k.OneOf("swiglu_beta", c.SwiGLUBeta, SwiGLUBetaAll, SwiGLUBetaUpDown, SwiGLUBetaDown)
	if k.Err != nil {
		return k.Err
	}
	if c.HiddenSize%c.NumHeads != 0 {
		return &ConfigError{Key: "arch.num_heads", Found: c.NumHeads, Want: fmt.Sprintf("a divisor of hidden_size %d", c.HiddenSize)}
	}
	if c.PosEncodings == PosRope && c.HeadDim()%2 != 0 {
		return &ConfigError{Key: "arch.num_heads", Found: c.NumHeads, Want: fmt.Sprintf(
			"an even head width for pos_encodings rope: hidden_size %d over num_heads is %d", c.HiddenSize, c.HeadDim())}
	}
	if n := c.PuzzleEmbSlots; n > 0 && c.PuzzleEmbDim == 0 {
		return &ConfigError{Key: "arch.puzzle_emb_len", Found: n, Want: "0 without task embeddings (puzzle_emb_ndim is 0)"}
	} else if n > 0 && c.PuzzleEmbDim > n*c.HiddenSize {
		return &ConfigError{Key: "arch.puzzle_emb_len", Found: n, Want: fmt.Sprintf(
			"0 or enough positions of hidden_size %d for puzzle_emb_ndim %d", c.HiddenSize, c.PuzzleEmbDim)}
	}
	if c.MLPWidth() == 0 {
		return &ConfigError{Key: "arch.expansion", Found: c.Expansion, Want: fmt.Sprintf("an MLP of at least one unit at hidden_size %d", c.HiddenSize)}
	}
	return c.validateResidual(&k)
}

// validateResidual checks the keys of the residual rule, and that none is set
// where it would be ignored.
func (c Config) validateResidual(k *check.Checks) error {
	scaled := deeploop.Placement(c.Placement).Scaled()
	for _, f := range []struct {
		key string
		v   float64
	}{
		{"p_H", c.PH}, {"p_L", c.PL},
		{"alpha_H", c.AlphaH}, {"alpha_L", c.AlphaL}, {"beta_H", c.BetaH}, {"beta_L", c.BetaL},
	} {
		k.Real(f.key, f.v, 0, 1<<20)
		switch {
		case f.v == 0:
		case !scaled:
			k.Fail(f.key, f.v, "0, since placement "+c.Placement+" has no residual scaling (deepnorm and deeploop have)")
		case c.OneNetwork() && strings.HasSuffix(f.key, "_H"):
			k.Fail(f.key, f.v, "0 with name "+c.Name+", whose one network has "+strings.TrimSuffix(f.key, "H")+"L")
		}
	}
	if c.InnerNorm && c.Placement != PlacementDeepLoop {
		k.Fail("inner_norm", true, "false with placement "+c.Placement+" (only deeploop has inner norms)")
	}
	return k.Err
}

// ValidateSizes checks the sizes that come from the dataset.
func (c Config) ValidateSizes() error {
	var k check.Checks
	k.Whole("seq_len", c.SeqLen, 1, 1<<20)
	k.Whole("vocab_size", c.VocabSize, 2, 1<<20)
	k.Whole("num_puzzle_identifiers", c.NumPuzzleIdentifiers, 1, math.MaxInt32)
	return k.Err
}

// Validate checks every key of the run, the architecture's too.
func (c TrainConfig) Validate() error {
	if err := c.Arch.Validate(); err != nil {
		return err
	}
	const most = math.MaxInt32
	var k check.Checks
	k.Whole("global_batch_size", c.GlobalBatchSize, 1, most)
	k.Whole("steps", c.Steps, 0, most)
	k.Whole("epochs", c.Epochs, 1, most)
	k.Whole("eval_interval", c.EvalInterval, 0, most)
	k.Whole("eval_steps", c.EvalSteps, 0, most)
	k.Whole("eval_augmentations", c.EvalAugmentations, -1, most)
	k.Whole("checkpoint_interval", c.CheckpointInterval, 0, most)
	k.Whole("keep", c.Keep, 0, most)
	k.Whole("threads", c.Threads, 0, kernel.MaxThreads)
	k.Whole("seed", c.Seed, 0, most)
	k.Real("lr", c.LR, 0, 10)
	k.Real("lr_min_ratio", c.LRMinRatio, 0, 1)
	k.Whole("lr_warmup_steps", c.LRWarmupSteps, 0, most)
	k.Below("beta1", c.Beta1, 1)
	k.Below("beta2", c.Beta2, 1)
	k.Real("weight_decay", c.WeightDecay, 0, 1000)
	k.Real("puzzle_emb_weight_decay", c.PuzzleEmbWeightDecay, 0, 1000)
	k.Real("puzzle_emb_lr", c.PuzzleEmbLR, 0, 10)
	k.Below("ema_rate", c.EMARate, 1)
	k.OneOf("precision", c.Precision, "fp32", "bf16", "auto")
	k.OneOf("kernel", c.Kernel, "ref", "c", "avx2", "avx512", "amx", "auto")
	if k.Err == nil && c.Steps == 0 && c.Epochs%c.EpochsPerPass() != 0 {
		k.Fail("eval_interval", c.EvalInterval, fmt.Sprintf("a divisor of epochs %d", c.Epochs))
	}
	return k.Err
}
