package lm

import (
	"fmt"
	"math"
	"slices"
	"strconv"

	"deeploop/deeploop"
	"deeploop/internal/check"
	"deeploop/internal/kernel"
)

// ConfigError is a configuration value that cannot work.
type ConfigError = check.Error

// Validate checks the architecture.
func (c Config) Validate() error {
	k := check.Checks{Prefix: "arch."}
	k.Whole("layers", c.Layers, 1, 1<<10)
	k.Whole("loops", c.Loops, 1, 1<<16)
	k.Whole("hidden_size", c.HiddenSize, 1, 1<<16)
	k.Whole("num_heads", c.NumHeads, 1, 1<<16)
	k.Whole("context", c.Context, 1, 1<<20)
	k.OneOf("mlp", c.MLP, MLPSwiGLU, MLPGELU, MLPGELUErf, MLPReLU2)
	k.Whole("mlp_width", c.MLPWidth, 0, 1<<18)
	k.OneOf("placement", c.Placement, string(deeploop.DeepLoop), string(deeploop.DeepNorm), string(deeploop.PreNorm), string(deeploop.PostNorm))
	k.OneOf("final_norm", c.FinalNorm, On, Off, Auto)
	k.OneOf("swiglu_beta", c.SwiGLUBeta, deeploop.SwiGLUBetaAll, deeploop.SwiGLUBetaUpDown, deeploop.SwiGLUBetaDown)
	k.Positive("rms_norm_eps", c.RMSNormEps, 1)
	k.Positive("rope_theta", c.RopeTheta, math.MaxFloat32)
	k.OneOf("init", c.Init, InitDDL, InitGPT2, InitXavier)
	k.OneOf("init_depth", c.InitDepth, DepthExecuted, DepthStored)
	k.Whole("vocab_multiple", c.VocabMultiple, 1, 1<<16)
	if k.Err != nil {
		return k.Err
	}
	if c.HiddenSize%c.NumHeads != 0 {
		k.Fail("num_heads", c.NumHeads, fmt.Sprintf("a divisor of hidden_size %d", c.HiddenSize))
	} else if c.HeadDim()%2 != 0 {
		k.Fail("num_heads", c.NumHeads, fmt.Sprintf("an even head width: hidden_size %d over num_heads is %d", c.HiddenSize, c.HeadDim()))
	}
	if c.Width() == 0 {
		k.Fail("mlp_width", c.MLPWidth, "a width above 0")
	}
	if c.MLP != MLPSwiGLU && c.SwiGLUBeta == deeploop.SwiGLUBetaUpDown {
		k.Fail("swiglu_beta", c.SwiGLUBeta, "all or down with mlp "+c.MLP)
	}
	scaled := deeploop.Placement(c.Placement).Scaled()
	for _, f := range []struct {
		key string
		v   float64
	}{{"p", c.P}, {"alpha", c.Alpha}, {"beta", c.Beta}} {
		k.Real(f.key, f.v, 0, 1<<20)
		if f.v != 0 && !scaled {
			k.Fail(f.key, f.v, "0, since placement "+c.Placement+" has no residual scaling (deepnorm and deeploop have)")
		}
	}
	if c.InnerNorm && c.Placement != string(deeploop.DeepLoop) {
		k.Fail("inner_norm", true, "false with placement "+c.Placement+" (only deeploop has inner norms)")
	}
	return k.Err
}

// Validate checks every key of the run, the architecture's too.
func (c TrainConfig) Validate() error {
	if err := c.Arch.Validate(); err != nil {
		return err
	}
	const most = math.MaxInt32
	var k check.Checks
	k.Whole("batch_size", c.BatchSize, 1, 1<<20)
	k.Whole("grad_accum", c.GradAccum, 1, 1<<20)
	k.Whole("steps", c.Steps, 1, most)
	k.Real("lr", c.LR, 0, 10)
	k.Real("lr_min_ratio", c.LRMinRatio, 0, 1)
	k.Whole("lr_warmup_steps", c.LRWarmupSteps, 0, most)
	k.Below("beta1", c.Beta1, 1)
	k.Below("beta2", c.Beta2, 1)
	k.Positive("eps", c.Eps, 1)
	k.Real("weight_decay", c.WeightDecay, 0, 1000)
	k.Real("grad_clip", c.GradClip, 0, math.MaxFloat32)
	k.Whole("seed", c.Seed, 0, most)
	k.Whole("eval_steps", c.EvalSteps, 0, most)
	k.Whole("eval_tokens", c.EvalTokens, 0, most)
	if c.EvalTokens == 1 {
		k.Fail("eval_tokens", 1, "at least 2, since the first is not predicted, or 0 for all")
	}
	k.Whole("checkpoint_interval", c.CheckpointInterval, 0, most)
	k.Whole("keep", c.Keep, 0, most)
	k.Below("ema_rate", c.EMARate, 1)
	k.Whole("kappa_steps", c.KappaSteps, 0, most)
	k.Whole("kappa_group", c.KappaGroup, 0, 1<<10)
	if _, err := c.Arch.visitGroup(c.KappaGroup); k.Err == nil && err != nil {
		k.Fail("kappa_group", c.KappaGroup, err.(*ConfigError).Want)
	}
	k.Whole("threads", c.Threads, 0, kernel.MaxThreads)
	k.OneOf("precision", c.Precision, "fp32", "bf16", "auto")
	k.OneOf("kernel", c.Kernel, "ref", "c", "avx2", "avx512", "amx", "auto")
	if _, err := c.LoopCounts(); k.Err == nil && err != nil {
		return err
	}
	return k.Err
}

// LoopCounts returns the loop counts to evaluate, that of training first and
// none twice.
func (c TrainConfig) LoopCounts() ([]int, error) {
	counts := []int{c.Arch.Loops}
	for _, s := range c.EvalLoops {
		n, err := strconv.Atoi(s)
		if err != nil || n < 1 || n > 1<<16 {
			return nil, &ConfigError{Key: "eval_loops", Found: s, Want: "whole numbers from 1, as in 1,2,8"}
		}
		if !slices.Contains(counts, n) {
			counts = append(counts, n)
		}
	}
	return counts, nil
}
