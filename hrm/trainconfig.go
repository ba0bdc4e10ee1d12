package hrm

import "deeploop/deeploop"

// TrainConfig is a whole training run. Keys are the reference's
// (sapientinc/HRM, config/cfg_pretrain.yaml); those after EvalSaveOutputs are
// ours.
type TrainConfig struct {
	Arch Config `yaml:"arch" json:"arch"`

	DataPath string `yaml:"data_path" json:"data_path" flag:"data" help:"dataset folder"`

	GlobalBatchSize int `yaml:"global_batch_size" json:"global_batch_size" help:"rows per step"`

	Epochs              int  `yaml:"epochs" json:"epochs" help:"passes over the groups; gives the number of steps where steps is 0"`
	EvalInterval        int  `yaml:"eval_interval" json:"eval_interval" help:"epochs between evaluations, a divisor of epochs; 0 is epochs"`
	CheckpointEveryEval bool `yaml:"checkpoint_every_eval" json:"checkpoint_every_eval" help:"accepted from the reference's configs: every evaluation saves first, always"`

	LR            float64 `yaml:"lr" json:"lr" help:"peak rate of Adam-atan2"`
	LRMinRatio    float64 `yaml:"lr_min_ratio" json:"lr_min_ratio" help:"last rate over peak rate (cosine); 1 is constant"`
	LRWarmupSteps int     `yaml:"lr_warmup_steps" json:"lr_warmup_steps" help:"steps of linear warm-up"`

	Beta1                float64 `yaml:"beta1" json:"beta1" help:"decay of the first moment"`
	Beta2                float64 `yaml:"beta2" json:"beta2" help:"decay of the second moment"`
	WeightDecay          float64 `yaml:"weight_decay" json:"weight_decay" help:"decoupled weight decay"`
	PuzzleEmbWeightDecay float64 `yaml:"puzzle_emb_weight_decay" json:"puzzle_emb_weight_decay" help:"weight decay of the task embeddings"`
	PuzzleEmbLR          float64 `yaml:"puzzle_emb_lr" json:"puzzle_emb_lr" help:"peak rate of the task embeddings (sign-SGD)"`

	Seed            int      `yaml:"seed" json:"seed" help:"seed of weights, sampling and halting"`
	EvalSaveOutputs []string `yaml:"eval_save_outputs" json:"eval_save_outputs" help:"accepted from the reference's configs and not used: hrm eval writes the predictions"`

	Steps              int     `yaml:"steps" json:"steps" help:"length of the whole schedule; 0 means from epochs, as in the reference"`
	EvalSteps          int     `yaml:"eval_steps" json:"eval_steps" help:"steps between evaluations; 0 is after each eval_interval epochs"`
	EvalAugmentations  int     `yaml:"eval_augmentations" json:"eval_augmentations" help:"augmented copies of a task that evaluation during training uses beside the original; -1 is all"`
	CheckpointInterval int     `yaml:"checkpoint_interval" json:"checkpoint_interval" help:"steps between checkpoints; 0 is only at evaluations and at the end"`
	Keep               int     `yaml:"keep" json:"keep" help:"older checkpoints kept beside best and last"`
	EMA                bool    `yaml:"ema" json:"ema" help:"keep an average of the weights and evaluate it"`
	EMARate            float64 `yaml:"ema_rate" json:"ema_rate" help:"how much of the average stays at each step"`
	Precision          string  `yaml:"precision" json:"precision" help:"fp32, bf16 or auto"`
	Threads            int     `yaml:"threads" json:"threads" help:"compute threads; 0 is one per core"`
	Kernel             string  `yaml:"kernel" json:"kernel" help:"ref, c, avx2, avx512, amx or auto"`
}

// TotalSteps returns the length of the schedule on a dataset with the given
// number of groups and mean examples per puzzle: Steps, or where that is 0
// epochs·groups·mean/batch rounded down, as the reference computes it.
func (c TrainConfig) TotalSteps(totalGroups int, meanPuzzleExamples float64) int {
	if c.Steps > 0 {
		return c.Steps
	}
	return int(float64(c.Epochs*totalGroups) * meanPuzzleExamples / float64(c.GlobalBatchSize))
}

// EpochsPerPass returns the epochs one pass of the loader covers: EvalInterval,
// or Epochs where that is 0.
func (c TrainConfig) EpochsPerPass() int {
	if c.EvalInterval > 0 {
		return c.EvalInterval
	}
	return c.Epochs
}

// Follow sets the keys that follow another key unless somebody chose them.
// base is the configuration before c was changed (the preset), chosen reports
// whether the dotted key was given by a file or on the command line.
//
//   - puzzle_emb_ndim follows hidden_size where the preset ties them (the
//     reference writes ${.hidden_size});
//   - H_layers, puzzle_emb_len and no_ACT_continue follow name, where that
//     turns HRM into TRM or back;
//   - puzzle_emb_len becomes 0 when puzzle_emb_ndim does;
//   - pos_encodings becomes none where mlp_t takes the place of attention, and
//     rope where attention comes back;
//   - p_H, p_L and inner_norm follow placement, but p_H stays 0 in TRM, which
//     has p_L alone;
//   - steps becomes 0 when epochs is chosen and steps is not;
//   - eval_steps becomes 0 when epochs or eval_interval is chosen and it is not.
func (c *TrainConfig) Follow(base TrainConfig, chosen func(key string) bool) {
	a := &c.Arch
	if !chosen("arch.puzzle_emb_ndim") && base.Arch.PuzzleEmbDim == base.Arch.HiddenSize {
		a.PuzzleEmbDim = a.HiddenSize
	}
	if a.OneNetwork() != base.Arch.OneNetwork() {
		blocks, slots := a.LLayers, 0
		if a.OneNetwork() {
			blocks, slots = 0, trmSlots
		}
		if !chosen("arch.H_layers") {
			a.HLayers = blocks
		}
		if !chosen("arch.puzzle_emb_len") {
			a.PuzzleEmbSlots = slots
		}
		if !chosen("arch.no_ACT_continue") {
			a.NoACTContinue = a.OneNetwork()
		}
	}
	if a.PuzzleEmbDim == 0 && !chosen("arch.puzzle_emb_len") {
		a.PuzzleEmbSlots = 0
	}
	if a.MLPT != base.Arch.MLPT && a.OneNetwork() && !chosen("arch.pos_encodings") {
		a.PosEncodings = PosRope
		if a.MLPT {
			a.PosEncodings = PosNone
		}
	}
	if a.Placement != base.Arch.Placement {
		p, inner := deeploop.Placement(a.Placement).Defaults()
		if !chosen("arch.p_H") && !a.OneNetwork() {
			a.PH = p
		}
		if !chosen("arch.p_L") {
			a.PL = p
		}
		if !chosen("arch.inner_norm") {
			a.InnerNorm = inner
		}
	}
	if chosen("epochs") && !chosen("steps") {
		c.Steps = 0
	}
	if (chosen("epochs") || chosen("eval_interval")) && !chosen("eval_steps") {
		c.EvalSteps = 0
	}
}
