package lm

import (
	"strings"

	"deeploop/deeploop"
)

// DefaultPreset is what `lm train` starts from when told nothing.
const DefaultPreset = "laptop"

// Presets returns the names of the presets, largest model first.
func Presets() []string { return []string{"gpt2-medium", "gpt2-small", "laptop", "testing"} }

// Preset returns the configuration with that name.
func Preset(name string) (TrainConfig, error) {
	switch name {
	case "gpt2-medium":
		return PresetGPT2Medium(), nil
	case "gpt2-small":
		return PresetGPT2Small(), nil
	case "laptop":
		return PresetLaptop(), nil
	case "testing":
		return PresetTesting(), nil
	}
	return TrainConfig{}, &ConfigError{Key: "preset", Found: name, Want: "one of " + strings.Join(Presets(), ", ")}
}

// PresetGPT2Small is the paper's small model and recipe (architectures.md A.5)
// at R=1: 123,608,832 parameters at vocabulary 50,304. A step of 480 sequences
// is 480 batches of one.
func PresetGPT2Small() TrainConfig {
	return TrainConfig{
		Arch: Config{
			Layers: 12, Loops: 1, HiddenSize: 768, NumHeads: 6, Context: 1024,
			MLP:       MLPSwiGLU,
			Placement: string(deeploop.DeepLoop), P: 0.5, InnerNorm: true,
			NormGain: true, EmbedNorm: true, FinalNorm: Auto, QKNorm: true,
			SwiGLUBeta: deeploop.SwiGLUBetaAll,
			RMSNormEps: 1e-6, RopeTheta: 10000,
			Init: InitDDL, InitDepth: DepthExecuted, VocabMultiple: 64,
		},
		BatchSize: 1, GradAccum: 480, Steps: 100000,
		LR: 1e-3, LRWarmupSteps: 2000,
		Beta1: 0.9, Beta2: 0.95, Eps: 1e-8, WeightDecay: 0.1, GradClip: 1,
		EvalSteps: 1000, EvalTokens: 1 << 20, CheckpointInterval: 1000,
		EMARate: 0.999, Precision: "auto", Kernel: "auto",
	}
}

// PresetGPT2Medium is the paper's medium model: 353,557,504 parameters at
// vocabulary 50,304.
func PresetGPT2Medium() TrainConfig {
	c := PresetGPT2Small()
	c.Arch.Layers, c.Arch.HiddenSize, c.Arch.NumHeads = 24, 1024, 8
	return c
}

// PresetLaptop is for a megabyte of text on a few cores: two blocks run three
// times; 402,560 parameters at 65 characters. The rate is ten times the paper's:
// under deeploop sublayers start beta times smaller and enter the stream with
// weight 1/alpha, so a short training needs it (RESULTS.md). prenorm, which
// learns at the paper's rate too, is better at this one as well.
func PresetLaptop() TrainConfig {
	c := PresetGPT2Small()
	c.Arch.Layers, c.Arch.Loops = 2, 3
	c.Arch.HiddenSize, c.Arch.NumHeads = 128, 4
	c.Arch.Context = 256
	c.Arch.VocabMultiple = 1
	c.BatchSize, c.GradAccum = 16, 1
	c.Steps = 2000
	c.LR, c.LRWarmupSteps, c.LRMinRatio = 1e-2, 100, 0.1
	c.EvalSteps, c.EvalTokens, c.CheckpointInterval = 250, 0, 250
	return c
}

// PresetTesting trains in seconds and learns nothing much.
func PresetTesting() TrainConfig {
	c := PresetLaptop()
	c.Arch.Layers, c.Arch.Loops = 1, 2
	c.Arch.HiddenSize, c.Arch.NumHeads = 32, 2
	c.Arch.Context = 32
	c.BatchSize, c.Steps = 4, 20
	c.LRWarmupSteps, c.EvalSteps, c.EvalTokens, c.CheckpointInterval = 5, 10, 2048, 10
	return c
}
