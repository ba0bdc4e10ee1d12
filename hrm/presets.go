package hrm

import "strings"

// DefaultPreset is what `hrm train` starts from when told nothing.
const DefaultPreset = "laptop"

// Presets returns the names of the presets, smallest model last.
func Presets() []string { return []string{NameHRM, NameTRM, "laptop", "testing"} }

// Preset returns the configuration with that name.
func Preset(name string) (TrainConfig, error) {
	switch name {
	case NameHRM:
		return PresetHRMv1(), nil
	case NameTRM:
		return PresetTRM(), nil
	case "laptop":
		return PresetLaptop(), nil
	case "testing":
		return PresetTesting(), nil
	}
	return TrainConfig{}, &ConfigError{Key: "preset", Found: name, Want: "one of " + strings.Join(Presets(), ", ")}
}

// PresetHRMv1 is the published run on ARC-AGI-1 (sapientinc/HRM,
// config/cfg_pretrain.yaml with config/arch/hrm_v1.yaml): 27,276,290 trained
// parameters at vocabulary 12.
func PresetHRMv1() TrainConfig {
	return TrainConfig{
		Arch: Config{
			Name:                NameHRM,
			Loss:                LossConfig{Name: "act", LossType: LossStablemax},
			HaltExplorationProb: 0.1,
			HaltMaxSteps:        16,
			HCycles:             2,
			LCycles:             2,
			HLayers:             4,
			LLayers:             4,
			HiddenSize:          512,
			NumHeads:            8,
			Expansion:           4,
			PuzzleEmbDim:        512,
			PosEncodings:        PosRope,
			RMSNormEps:          1e-5,
			RopeTheta:           10000,
			Placement:           PlacementPostNorm,
			NgMode:              NgPaper,
			SwiGLUBeta:          SwiGLUBetaAll,
		},
		GlobalBatchSize:      768,
		Epochs:               100000,
		EvalInterval:         10000,
		CheckpointEveryEval:  true,
		LR:                   1e-4,
		LRMinRatio:           1,
		LRWarmupSteps:        2000,
		Beta1:                0.9,
		Beta2:                0.95,
		WeightDecay:          0.1,
		PuzzleEmbWeightDecay: 0.1,
		PuzzleEmbLR:          1e-2,
		EvalAugmentations:    8,
		CheckpointInterval:   1000,
		EMARate:              0.999,
		Precision:            "auto",
		Kernel:               "auto",
	}
}

// trmSlots are TRM's positions of a task embedding, whatever its width.
const trmSlots = 16

// PresetTRM is the published run of TRM on ARC-AGI-1 and 2
// (SamsungSAILMontreal/TinyRecursiveModels, config/cfg_pretrain.yaml with
// config/arch/trm.yaml and the README's commands; its Sudoku run has L_cycles
// 6): 6,829,058 trained parameters at vocabulary 12.
func PresetTRM() TrainConfig {
	c := PresetHRMv1()
	a := &c.Arch
	a.Name, a.HLayers, a.LLayers = NameTRM, 0, 2
	a.HCycles, a.LCycles = 3, 4
	a.PuzzleEmbSlots, a.NoACTContinue = trmSlots, true
	c.EMA = true
	return c
}

// PresetLaptop is for the sample tasks and other small grids on a few cores:
// 1,051,906 trained parameters at vocabulary 12. One call of each module per
// segment, small batches and few segments: on small grids this learned more
// per minute than the published values (RESULTS.md). The residual is the
// published one; deeploop learns faster still.
func PresetLaptop() TrainConfig {
	c := PresetHRMv1()
	c.Arch.HiddenSize, c.Arch.PuzzleEmbDim = 128, 128
	c.Arch.NumHeads = 4
	c.Arch.HLayers, c.Arch.LLayers = 2, 2
	c.Arch.HCycles, c.Arch.LCycles = 1, 1
	c.Arch.HaltMaxSteps = 4
	c.GlobalBatchSize = 32
	c.Steps = 2000
	c.Epochs, c.EvalInterval = 1000, 100
	c.EvalSteps = 500
	c.LR, c.LRWarmupSteps, c.LRMinRatio = 1e-3, 50, 0.05
	c.EMA, c.EMARate = true, 0.99
	c.CheckpointInterval = 500
	return c
}

// PresetTesting trains in seconds and learns nothing much: 58,178 trained
// parameters at vocabulary 12.
func PresetTesting() TrainConfig {
	c := PresetLaptop()
	c.Arch.HiddenSize, c.Arch.PuzzleEmbDim = 32, 32
	c.Arch.NumHeads = 2
	c.Arch.HLayers, c.Arch.LLayers = 1, 1
	c.Arch.HCycles, c.Arch.LCycles = 2, 2
	c.GlobalBatchSize = 8
	c.Steps = 20
	c.Epochs, c.EvalInterval = 20, 10
	c.EvalSteps = 10
	c.EvalAugmentations = 1
	c.LR, c.LRWarmupSteps, c.LRMinRatio = 1e-3, 5, 1
	c.EMA = false
	c.CheckpointInterval = 10
	return c
}
