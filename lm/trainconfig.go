package lm

import "deeploop/deeploop"

// TrainConfig is a whole training run.
type TrainConfig struct {
	Arch Config `yaml:"arch" json:"arch"`

	DataPath string `yaml:"data_path" json:"data_path" flag:"data" help:"dataset of lm prepare, or shards of llm.c or nanoGPT"`

	BatchSize int `yaml:"batch_size" json:"batch_size" help:"sequences that run at once"`
	GradAccum int `yaml:"grad_accum" json:"grad_accum" help:"batches per optimizer step"`
	Steps     int `yaml:"steps" json:"steps" help:"length of the whole schedule in optimizer steps"`

	LR            float64 `yaml:"lr" json:"lr" help:"peak rate of AdamW"`
	LRMinRatio    float64 `yaml:"lr_min_ratio" json:"lr_min_ratio" help:"last rate over peak rate (cosine); 1 is constant"`
	LRWarmupSteps int     `yaml:"lr_warmup_steps" json:"lr_warmup_steps" help:"steps of linear warm-up"`
	Beta1         float64 `yaml:"beta1" json:"beta1" help:"decay of the first moment"`
	Beta2         float64 `yaml:"beta2" json:"beta2" help:"decay of the second moment"`
	Eps           float64 `yaml:"eps" json:"eps" help:"added to the square root of the second moment"`
	WeightDecay   float64 `yaml:"weight_decay" json:"weight_decay" help:"decoupled weight decay of matrices and embedding; gains have none"`
	GradClip      float64 `yaml:"grad_clip" json:"grad_clip" help:"largest norm of all gradients together; 0 is no limit"`

	Seed               int      `yaml:"seed" json:"seed" help:"seed of weights and of the order of the data"`
	EvalSteps          int      `yaml:"eval_steps" json:"eval_steps" help:"steps between evaluations; 0 is only at the end"`
	EvalTokens         int      `yaml:"eval_tokens" json:"eval_tokens" help:"validation tokens an evaluation reads; 0 is all"`
	EvalLoops          []string `yaml:"eval_loops" json:"eval_loops" help:"other loop counts to evaluate, as in 1,2,8"`
	CheckpointInterval int      `yaml:"checkpoint_interval" json:"checkpoint_interval" help:"steps between checkpoints; 0 is only at evaluations and at the end"`
	Keep               int      `yaml:"keep" json:"keep" help:"older checkpoints kept beside best and last"`
	EMA                bool     `yaml:"ema" json:"ema" help:"keep an average of the weights and evaluate it"`
	EMARate            float64  `yaml:"ema_rate" json:"ema_rate" help:"how much of the average stays at each step"`
	CheckpointLoops    bool     `yaml:"checkpoint_loops" json:"checkpoint_loops" help:"keep only the states between loops and compute the rest again in the backward pass: less memory, about a third more time"`
	KappaSteps         int      `yaml:"kappa_steps" json:"kappa_steps" help:"steps between measurements of kappa_G (maximum and median over sublayers) and of the visits' mean pairwise cosine, and one at the end, written to metrics.jsonl; 0 is never"`
	KappaGroup         int      `yaml:"kappa_group" json:"kappa_group" help:"blocks that kappa takes as the stored ones of an untied model (loops 1): block k and every so many-th after it count as visits of one; 0 is none"`
	Precision          string   `yaml:"precision" json:"precision" help:"fp32, bf16 or auto"`
	Threads            int      `yaml:"threads" json:"threads" help:"compute threads; 0 is one per core"`
	Kernel             string   `yaml:"kernel" json:"kernel" help:"ref, c, avx2, avx512, amx or auto"`
}

// TokensPerStep is how many tokens an optimizer step reads.
func (c TrainConfig) TokensPerStep() int { return c.BatchSize * c.GradAccum * c.Arch.Context }

// Follow sets p and inner_norm as placement wants them, unless somebody chose
// them; base is the preset.
func (c *TrainConfig) Follow(base TrainConfig, chosen func(key string) bool) {
	a := &c.Arch
	if a.Placement == base.Arch.Placement {
		return
	}
	p, inner := deeploop.Placement(a.Placement).Defaults()
	if !chosen("arch.p") {
		a.P = p
	}
	if !chosen("arch.inner_norm") {
		a.InnerNorm = inner
	}
}
