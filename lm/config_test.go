package lm

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"deeploop/deeploop"
	"deeploop/internal/kernel"
)

// presetParams pins the trained parameters of every preset at a vocabulary
// before rounding: GPT-2's 50,257, and the 65 characters of tinyshakespeare.
// A preset that is not here fails the test.
var presetParams = map[string]struct{ vocabulary, params int }{
	"gpt2-medium": {50_257, 353_557_504},
	"gpt2-small":  {50_257, 123_608_832},
	"laptop":      {65, 402_560},
	"testing":     {65, 14_528},
}

func TestPresetParameterCounts(t *testing.T) {
	require.Len(t, presetParams, len(Presets()))
	for _, name := range Presets() {
		t.Run(name, func(t *testing.T) {
			want, ok := presetParams[name]
			require.True(t, ok, "preset %s has no pinned parameter count", name)
			c, err := Preset(name)
			require.NoError(t, err)
			require.NoError(t, c.Validate())
			c.Arch.Vocabulary(want.vocabulary)
			require.Equal(t, want.params, c.Arch.NumParams())
		})
	}
}

func TestUnknownPresetNamesTheOnesThereAre(t *testing.T) {
	_, err := Preset("laptob")
	require.ErrorContains(t, err, "laptob")
	require.ErrorContains(t, err, "gpt2-medium, gpt2-small, laptop, testing")
}

func TestNumParamsEqualsTheTensors(t *testing.T) {
	eachVariant(t, func(t *testing.T, c TrainConfig) {
		m, err := NewModel(c.Arch, kernel.Float32, 1)
		require.NoError(t, err)
		n := 0
		for _, p := range m.Params() {
			n += p.Data.Len()
		}
		require.Equal(t, n, c.Arch.NumParams())
	})
}

func TestVocabularyIsRoundedUp(t *testing.T) {
	for _, c := range []struct{ tokens, multiple, want int }{
		{50_257, 64, 50_304}, {64, 64, 64}, {65, 1, 65}, {1, 128, 128}, {7, 0, 7},
	} {
		a := Config{VocabMultiple: c.multiple}
		a.Vocabulary(c.tokens)
		require.Equal(t, c.want, a.VocabSize)
	}
}

func TestWidth(t *testing.T) {
	for _, c := range []struct {
		hidden, width int
		mlp           string
		want          int
	}{
		{768, 0, MLPSwiGLU, 2048}, {1024, 0, MLPSwiGLU, 2730}, {768, 0, MLPGELU, 3072},
		{64, 96, MLPSwiGLU, 96}, {64, 96, MLPReLU2, 96}, {10, 0, MLPGELUErf, 40},
	} {
		require.Equal(t, c.want, Config{HiddenSize: c.hidden, MLPWidth: c.width, MLP: c.mlp}.Width(), "%+v", c)
	}
}

func TestTokensPerStepOfThePaper(t *testing.T) {
	for _, c := range []TrainConfig{PresetGPT2Small(), PresetGPT2Medium()} {
		require.Equal(t, 491_520, c.TokensPerStep())
		require.Equal(t, 128, c.Arch.HeadDim())
	}
}

// Another loop count keeps alpha, and the beta that the weights were drawn
// with, whatever the rule would give.
func TestAtLoopsKeepsAlphaAndBeta(t *testing.T) {
	for _, p := range []deeploop.Placement{deeploop.DeepLoop, deeploop.DeepNorm, deeploop.PreNorm, deeploop.PostNorm} {
		c := tiny()
		place(p)(&c)
		trained, err := NewModel(c.Arch, kernel.Float32, 1)
		require.NoError(t, err)
		for _, loops := range []int{1, 2, 7} {
			other, err := NewModel(c.Arch.AtLoops(loops), kernel.Float32, 1)
			require.NoError(t, err)
			require.Equal(t, loops, other.Config.Loops)
			require.Equal(t, trained.Blocks.Residual, other.Blocks.Residual)
			require.Equal(t, trained.Blocks.Beta, other.Blocks.Beta)
			back := other.Config.AtLoops(c.Arch.Loops)
			back.Alpha, back.Beta = trained.Config.Alpha, trained.Config.Beta
			require.Equal(t, trained.Config, back)
		}
	}
	c := tiny().Arch
	c.Alpha, c.Beta = 7, .5
	require.Equal(t, 7., c.AtLoops(9).Alpha, "alpha that was set stays")
	require.Equal(t, .5, c.AtLoops(9).Beta, "and so does beta")
}

func TestValidateNamesKeyFoundAndExpected(t *testing.T) {
	nan := math.NaN()
	for name, c := range map[string]struct {
		change func(*TrainConfig)
		key    string
		says   []string
	}{
		"layers":         {func(c *TrainConfig) { c.Arch.Layers = 0 }, "arch.layers", []string{"is 0", "from 1"}},
		"loops":          {func(c *TrainConfig) { c.Arch.Loops = -1 }, "arch.loops", []string{"is -1"}},
		"hidden":         {func(c *TrainConfig) { c.Arch.HiddenSize = 0 }, "arch.hidden_size", []string{"is 0"}},
		"no heads":       {func(c *TrainConfig) { c.Arch.NumHeads = 0 }, "arch.num_heads", []string{"is 0"}},
		"heads":          {func(c *TrainConfig) { c.Arch.NumHeads = 5 }, "arch.num_heads", []string{"is 5", "hidden_size 768"}},
		"odd head":       {func(c *TrainConfig) { c.Arch.HiddenSize, c.Arch.NumHeads = 24, 8 }, "arch.num_heads", []string{"even head width"}},
		"context":        {func(c *TrainConfig) { c.Arch.Context = 0 }, "arch.context", []string{"is 0"}},
		"mlp":            {func(c *TrainConfig) { c.Arch.MLP = "moe" }, "arch.mlp", []string{`"moe"`, "swiglu, gelu, gelu_erf, relu2"}},
		"width":          {func(c *TrainConfig) { c.Arch.MLPWidth = -1 }, "arch.mlp_width", []string{"-1"}},
		"placement":      {func(c *TrainConfig) { c.Arch.Placement = "sandwich" }, "arch.placement", []string{`"sandwich"`, "deeploop, deepnorm, prenorm, postnorm"}},
		"p negative":     {func(c *TrainConfig) { c.Arch.P = -.5 }, "arch.p", []string{"-0.5"}},
		"p nan":          {func(c *TrainConfig) { c.Arch.P = nan }, "arch.p", []string{"NaN"}},
		"p ignored":      {func(c *TrainConfig) { c.Arch.Placement, c.Arch.InnerNorm = "prenorm", false }, "arch.p", []string{"0.5", "prenorm"}},
		"alpha":          {func(c *TrainConfig) { c.Arch.Alpha = -1 }, "arch.alpha", []string{"-1"}},
		"alpha ignored":  {func(c *TrainConfig) { place(deeploop.PostNorm)(c); c.Arch.Alpha = 2 }, "arch.alpha", []string{"postnorm"}},
		"beta ignored":   {func(c *TrainConfig) { place(deeploop.PreNorm)(c); c.Arch.Beta = 2 }, "arch.beta", []string{"prenorm"}},
		"inner ignored":  {func(c *TrainConfig) { place(deeploop.DeepNorm)(c); c.Arch.InnerNorm = true }, "arch.inner_norm", []string{"deeploop"}},
		"final norm":     {func(c *TrainConfig) { c.Arch.FinalNorm = "yes" }, "arch.final_norm", []string{"on, off, auto"}},
		"swiglu_beta":    {func(c *TrainConfig) { c.Arch.SwiGLUBeta = "gate" }, "arch.swiglu_beta", []string{`"gate"`}},
		"up without":     {func(c *TrainConfig) { c.Arch.MLP, c.Arch.SwiGLUBeta = "gelu", "up_down" }, "arch.swiglu_beta", []string{"gelu"}},
		"eps":            {func(c *TrainConfig) { c.Arch.RMSNormEps = 0 }, "arch.rms_norm_eps", []string{"above 0"}},
		"rope":           {func(c *TrainConfig) { c.Arch.RopeTheta = math.Inf(1) }, "arch.rope_theta", []string{"+Inf"}},
		"init":           {func(c *TrainConfig) { c.Arch.Init = "zero" }, "arch.init", []string{"ddl, gpt2, xavier"}},
		"init depth":     {func(c *TrainConfig) { c.Arch.InitDepth = "all" }, "arch.init_depth", []string{"executed, stored"}},
		"multiple":       {func(c *TrainConfig) { c.Arch.VocabMultiple = 0 }, "arch.vocab_multiple", []string{"is 0"}},
		"batch":          {func(c *TrainConfig) { c.BatchSize = 0 }, "batch_size", []string{"is 0"}},
		"accum":          {func(c *TrainConfig) { c.GradAccum = 0 }, "grad_accum", []string{"is 0"}},
		"steps":          {func(c *TrainConfig) { c.Steps = 0 }, "steps", []string{"is 0"}},
		"lr nan":         {func(c *TrainConfig) { c.LR = nan }, "lr", []string{"NaN"}},
		"lr":             {func(c *TrainConfig) { c.LR = -1 }, "lr", []string{"-1"}},
		"min ratio":      {func(c *TrainConfig) { c.LRMinRatio = 1.5 }, "lr_min_ratio", []string{"1.5"}},
		"warmup":         {func(c *TrainConfig) { c.LRWarmupSteps = -1 }, "lr_warmup_steps", []string{"-1"}},
		"beta1":          {func(c *TrainConfig) { c.Beta1 = 1 }, "beta1", []string{"below 1"}},
		"beta2":          {func(c *TrainConfig) { c.Beta2 = -.1 }, "beta2", []string{"-0.1"}},
		"adam eps":       {func(c *TrainConfig) { c.Eps = 0 }, "eps", []string{"above 0"}},
		"decay":          {func(c *TrainConfig) { c.WeightDecay = -1 }, "weight_decay", []string{"-1"}},
		"clip":           {func(c *TrainConfig) { c.GradClip = -1 }, "grad_clip", []string{"-1"}},
		"seed":           {func(c *TrainConfig) { c.Seed = -3 }, "seed", []string{"-3"}},
		"eval steps":     {func(c *TrainConfig) { c.EvalSteps = -1 }, "eval_steps", []string{"-1"}},
		"eval tokens":    {func(c *TrainConfig) { c.EvalTokens = -1 }, "eval_tokens", []string{"-1"}},
		"eval one token": {func(c *TrainConfig) { c.EvalTokens = 1 }, "eval_tokens", []string{"is 1", "at least 2"}},
		"eval loops":     {func(c *TrainConfig) { c.EvalLoops = []string{"1", "x"} }, "eval_loops", []string{"is x", "1,2,8"}},
		"eval loops 0":   {func(c *TrainConfig) { c.EvalLoops = []string{"0"} }, "eval_loops", []string{"is 0"}},
		"checkpoint":     {func(c *TrainConfig) { c.CheckpointInterval = -1 }, "checkpoint_interval", []string{"-1"}},
		"keep":           {func(c *TrainConfig) { c.Keep = -1 }, "keep", []string{"-1"}},
		"ema rate":       {func(c *TrainConfig) { c.EMARate = 1 }, "ema_rate", []string{"below 1"}},
		"kappa":          {func(c *TrainConfig) { c.KappaSteps = -1 }, "kappa_steps", []string{"-1"}},
		"precision":      {func(c *TrainConfig) { c.Precision = "fp16" }, "precision", []string{`"fp16"`, "bf16"}},
		"threads":        {func(c *TrainConfig) { c.Threads = -1 }, "threads", []string{"-1"}},
		"kernel":         {func(c *TrainConfig) { c.Kernel = "cuda" }, "kernel", []string{`"cuda"`, "avx512"}},
		"several faults": {func(c *TrainConfig) { c.Kernel, c.Arch.Layers = "cuda", 0 }, "arch.layers", nil},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := PresetGPT2Small()
			c.change(&cfg)
			err := cfg.Validate()
			var ce *ConfigError
			require.ErrorAs(t, err, &ce)
			require.True(t, ce.BadInput())
			require.Equal(t, c.key, ce.ConfigKey())
			for _, s := range append(c.says, c.key) {
				require.ErrorContains(t, err, s)
			}
		})
	}
}

func TestModelNeedsAVocabulary(t *testing.T) {
	for _, v := range []int{0, -1, 1<<24 + 1} {
		c := tiny().Arch
		c.VocabSize = v
		_, err := NewModel(c, kernel.Float32, 1)
		require.ErrorContains(t, err, "vocab_size")
	}
}

func TestEveryPlacementWithItsDefaultsIsValid(t *testing.T) {
	for _, p := range []deeploop.Placement{deeploop.DeepLoop, deeploop.DeepNorm, deeploop.PreNorm, deeploop.PostNorm} {
		c := PresetLaptop()
		place(p)(&c)
		require.NoError(t, c.Validate(), p)
		exponent, inner := p.Defaults()
		require.Equal(t, exponent, c.Arch.P)
		require.Equal(t, inner, c.Arch.InnerNorm)
		require.Equal(t, p == deeploop.PreNorm, c.Arch.HasFinalNorm())
	}
}

func TestFollowLeavesChosenKeysAlone(t *testing.T) {
	base := PresetLaptop()
	c := base
	c.Arch.Placement, c.Arch.P, c.Arch.InnerNorm = string(deeploop.DeepNorm), .4, false
	c.Follow(base, func(k string) bool { return k == "arch.p" })
	require.Equal(t, .4, c.Arch.P)
	require.False(t, c.Arch.InnerNorm)
	c = base
	c.Arch.P = .3
	c.Follow(base, func(string) bool { return false })
	require.Equal(t, .3, c.Arch.P, "without another placement nothing follows")
}

func TestLoopCounts(t *testing.T) {
	c := PresetLaptop()
	c.EvalLoops = []string{"1", "3", "8", "1"}
	counts, err := c.LoopCounts()
	require.NoError(t, err)
	require.Equal(t, []int{3, 1, 8}, counts, "training's own first, each once")
}
