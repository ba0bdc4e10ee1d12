package main

import (
	"deeploop/hrm"
	"deeploop/internal/kernel"
)

// referenceRun is all_config.yaml of the reference trainer: the keys of its
// PretrainConfig (sapientinc/HRM, pretrain.py) and of its model's
// configuration (models/hrm/hrm_act_v1.py).
type referenceRun struct {
	Arch     referenceArch `yaml:"arch"`
	DataPath string        `yaml:"data_path"`
	referenceTraining
}

// trmRun is that of TRM's (SamsungSAILMontreal/TinyRecursiveModels, pretrain.py
// and models/recursive_reasoning/trm.py).
type trmRun struct {
	Arch      trmArch  `yaml:"arch"`
	DataPaths []string `yaml:"data_paths"`
	referenceTraining
	EMA     bool    `yaml:"ema"`
	EMARate float64 `yaml:"ema_rate"`
}

type referenceTraining struct {
	GlobalBatchSize      int     `yaml:"global_batch_size"`
	Epochs               int     `yaml:"epochs"`
	EvalInterval         int     `yaml:"eval_interval"`
	CheckpointEveryEval  bool    `yaml:"checkpoint_every_eval"`
	LR                   float64 `yaml:"lr"`
	LRMinRatio           float64 `yaml:"lr_min_ratio"`
	LRWarmupSteps        int     `yaml:"lr_warmup_steps"`
	Beta1                float64 `yaml:"beta1"`
	Beta2                float64 `yaml:"beta2"`
	WeightDecay          float64 `yaml:"weight_decay"`
	PuzzleEmbWeightDecay float64 `yaml:"puzzle_emb_weight_decay"`
	PuzzleEmbLR          float64 `yaml:"puzzle_emb_lr"`
	Seed                 int     `yaml:"seed"`
}

type referenceArch struct {
	Name                string        `yaml:"name" flag:"arch-name"`
	Loss                referenceLoss `yaml:"loss"`
	HaltExplorationProb float64       `yaml:"halt_exploration_prob"`
	HaltMaxSteps        int           `yaml:"halt_max_steps"`
	HCycles             int           `yaml:"H_cycles"`
	LCycles             int           `yaml:"L_cycles"`
	HLayers             int           `yaml:"H_layers"`
	LLayers             int           `yaml:"L_layers"`
	HiddenSize          int           `yaml:"hidden_size"`
	NumHeads            int           `yaml:"num_heads"`
	Expansion           float64       `yaml:"expansion"`
	PuzzleEmbDim        int           `yaml:"puzzle_emb_ndim"`
	PosEncodings        string        `yaml:"pos_encodings"`
	RMSNormEps          float64       `yaml:"rms_norm_eps"`
	RopeTheta           float64       `yaml:"rope_theta"`
	ForwardDType        string        `yaml:"forward_dtype"`
}

type trmArch struct {
	referenceArch
	MLPT           bool `yaml:"mlp_t"`
	PuzzleEmbSlots int  `yaml:"puzzle_emb_len"`
	NoACTContinue  bool `yaml:"no_ACT_continue"`
}

type referenceLoss struct {
	Name     string `yaml:"name" flag:"loss-name"`
	LossType string `yaml:"loss_type"`
}

func newReferenceRun(c hrm.TrainConfig, e hrm.Export) referenceRun {
	return referenceRun{Arch: newReferenceArch(c.Arch, e), DataPath: c.DataPath, referenceTraining: newReferenceTraining(c)}
}

func newTRMRun(c hrm.TrainConfig, e hrm.Export) trmRun {
	return trmRun{
		Arch: trmArch{
			referenceArch: newReferenceArch(c.Arch, e),
			MLPT:          c.Arch.MLPT, PuzzleEmbSlots: c.Arch.PuzzleEmbSlots, NoACTContinue: c.Arch.NoACTContinue,
		},
		DataPaths: []string{c.DataPath}, referenceTraining: newReferenceTraining(c), EMA: c.EMA, EMARate: c.EMARate,
	}
}

func newReferenceArch(a hrm.Config, e hrm.Export) referenceArch {
	forward := "bfloat16"
	if e.States == kernel.Float32 {
		forward = "float32"
	}
	return referenceArch{
		Name:                a.ReferenceName(),
		Loss:                referenceLoss{"losses@ACTLossHead", a.Loss.LossType},
		HaltExplorationProb: a.HaltExplorationProb, HaltMaxSteps: a.HaltMaxSteps,
		HCycles: a.HCycles, LCycles: a.LCycles, HLayers: a.HLayers, LLayers: a.LLayers,
		HiddenSize: a.HiddenSize, NumHeads: a.NumHeads, Expansion: a.Expansion, PuzzleEmbDim: a.PuzzleEmbDim,
		PosEncodings: a.PosEncodings, RMSNormEps: a.RMSNormEps, RopeTheta: a.RopeTheta, ForwardDType: forward,
	}
}

func newReferenceTraining(c hrm.TrainConfig) referenceTraining {
	return referenceTraining{
		GlobalBatchSize: c.GlobalBatchSize, Epochs: c.Epochs,
		EvalInterval: c.EpochsPerPass(), CheckpointEveryEval: c.CheckpointEveryEval, // its null is epochs
		LR: c.LR, LRMinRatio: c.LRMinRatio, LRWarmupSteps: c.LRWarmupSteps, Beta1: c.Beta1, Beta2: c.Beta2,
		WeightDecay: c.WeightDecay, PuzzleEmbWeightDecay: c.PuzzleEmbWeightDecay, PuzzleEmbLR: c.PuzzleEmbLR, Seed: c.Seed,
	}
}
