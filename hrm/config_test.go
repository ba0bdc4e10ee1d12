package hrm

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"deeploop/deeploop"
)

// presetParams pins the trained parameters of every preset at vocabulary 12
// and 100 positions. A preset that is not here fails the test.
var presetParams = map[string]int{
	"hrm_v1":  27_276_290,
	"trm":     6_829_058,
	"laptop":  1_051_906,
	"testing": 58_178,
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
			c.Arch.VocabSize, c.Arch.SeqLen, c.Arch.NumPuzzleIdentifiers = 12, 100, 1
			require.NoError(t, c.Arch.ValidateSizes())
			require.Equal(t, want, c.Arch.NumParams())
		})
	}
}

func TestUnknownPresetNamesTheOnesThereAre(t *testing.T) {
	_, err := Preset("laptob")
	require.ErrorContains(t, err, "laptob")
	require.ErrorContains(t, err, "hrm_v1, trm, laptop, testing")
}

func TestDerivedSizes(t *testing.T) {
	for _, c := range []struct {
		hidden, heads, ndim  int
		expansion            float64
		width, prefix, kHead int
	}{
		{512, 8, 512, 4, 1536, 1, 64},
		{64, 2, 64, 4, 256, 1, 32},   // 171 rounds up to 256
		{64, 4, 100, 4, 256, 2, 16},  // not a multiple of hidden: two positions
		{96, 3, 0, 4, 256, 0, 32},    // no task embedding: exactly 256
		{128, 4, 128, 4, 512, 1, 32}, // 341
		{768, 12, 768, 1, 512, 1, 64},
		{3, 1, 3, 0.25, 0, 1, 3}, // 0.5 rounds to even, which is 0
	} {
		got := Config{HiddenSize: c.hidden, NumHeads: c.heads, PuzzleEmbDim: c.ndim, Expansion: c.expansion}
		require.Equal(t, c.width, got.MLPWidth(), "%+v", c)
		require.Equal(t, c.prefix, got.PuzzleEmbLen(), "%+v", c)
		require.Equal(t, c.kHead, got.HeadDim(), "%+v", c)
	}
}

func TestNumParamsCountsOptions(t *testing.T) {
	c := PresetTesting().Arch
	c.VocabSize, c.SeqLen = 12, 100
	base, d := c.NumParams(), c.HiddenSize

	learned := c
	learned.PosEncodings = PosLearned
	require.Equal(t, base+101*d, learned.NumParams())

	gains := c
	gains.NormGain = true
	require.Equal(t, base+2*2*d, gains.NumParams())
	gains.Placement, gains.InnerNorm = PlacementDeepLoop, true
	require.Equal(t, base+2*4*d, gains.NumParams())
	gains.InputRMS = true
	require.Equal(t, base+2*4*d+d, gains.NumParams())
	gains.Placement, gains.InnerNorm, gains.InputRMS = PlacementPreNorm, false, false
	require.Equal(t, base+2*2*d+2*d, gains.NumParams())
}

func TestTotalSteps(t *testing.T) {
	c := PresetHRMv1()
	c.Steps = 0
	// 100,000 epochs of 960 groups with a mean of 3.2 examples in batches of 768.
	require.Equal(t, 400_000, c.TotalSteps(960, 3.2))
	c.Epochs, c.GlobalBatchSize = 7, 8
	require.Equal(t, 12, c.TotalSteps(5, 2.9)) // 12.69
	require.Equal(t, 13, c.TotalSteps(5, 3.0))
	c.Steps = 77
	require.Equal(t, 77, c.TotalSteps(5, 3.0))
}

func TestValidateNamesKeyFoundAndExpected(t *testing.T) {
	nan := math.NaN()
	for name, c := range map[string]struct {
		change func(*TrainConfig)
		key    string
		says   []string
	}{
		"heads":         {func(c *TrainConfig) { c.Arch.NumHeads = 5 }, "arch.num_heads", []string{"is 5", "hidden_size 512"}},
		"odd head":      {func(c *TrainConfig) { c.Arch.HiddenSize, c.Arch.NumHeads = 24, 8 }, "arch.num_heads", []string{"even head width"}},
		"hidden":        {func(c *TrainConfig) { c.Arch.HiddenSize = 0 }, "arch.hidden_size", []string{"is 0"}},
		"loss":          {func(c *TrainConfig) { c.Arch.Loss.LossType = "mse" }, "arch.loss.loss_type", []string{`"mse"`, "softmax_cross_entropy"}},
		"name":          {func(c *TrainConfig) { c.Arch.Name = "ttm" }, "arch.name", []string{`"ttm"`, "hrm_v1, trm"}},
		"positions":     {func(c *TrainConfig) { c.Arch.PosEncodings = "alibi" }, "arch.pos_encodings", []string{"rope, learned"}},
		"placement":     {func(c *TrainConfig) { c.Arch.Placement = "sandwich" }, "arch.placement", []string{"deeploop"}},
		"p ignored":     {func(c *TrainConfig) { c.Arch.PL = 0.5 }, "arch.p_L", []string{"0.5", "postnorm"}},
		"alpha ignored": {func(c *TrainConfig) { c.Arch.AlphaH = 2 }, "arch.alpha_H", []string{"postnorm"}},
		"inner ignored": {func(c *TrainConfig) { c.Arch.InnerNorm = true }, "arch.inner_norm", []string{"deeploop"}},
		"p nan":         {func(c *TrainConfig) { c.Arch.Placement, c.Arch.PH = "deeploop", nan }, "arch.p_H", []string{"NaN"}},
		"two networks":  {func(c *TrainConfig) { c.Arch.Name = "trm" }, "arch.H_layers", []string{"is 4", "plays both roles"}},
		"p_H of trm": {func(c *TrainConfig) {
			*c = PresetTRM()
			c.Arch.Placement, c.Arch.PH = "deeploop", .5
		}, "arch.p_H", []string{"0.5", "has p_L"}},
		"none of hrm":     {func(c *TrainConfig) { c.Arch.PosEncodings = "none" }, "arch.pos_encodings", []string{"rope, learned"}},
		"slots of none":   {func(c *TrainConfig) { c.Arch.PuzzleEmbSlots, c.Arch.PuzzleEmbDim = 2, 0 }, "arch.puzzle_emb_len", []string{"is 2", "puzzle_emb_ndim is 0"}},
		"too few slots":   {func(c *TrainConfig) { c.Arch.PuzzleEmbSlots, c.Arch.PuzzleEmbDim = 2, 1025 }, "arch.puzzle_emb_len", []string{"is 2", "1025"}},
		"negative slots":  {func(c *TrainConfig) { c.Arch.PuzzleEmbSlots = -1 }, "arch.puzzle_emb_len", []string{"-1"}},
		"exploration":     {func(c *TrainConfig) { c.Arch.HaltExplorationProb = 1.5 }, "arch.halt_exploration_prob", []string{"1.5"}},
		"eps":             {func(c *TrainConfig) { c.Arch.RMSNormEps = 0 }, "arch.rms_norm_eps", []string{"above 0"}},
		"batch":           {func(c *TrainConfig) { c.GlobalBatchSize = 0 }, "global_batch_size", []string{"is 0"}},
		"lr nan":          {func(c *TrainConfig) { c.LR = nan }, "lr", []string{"NaN"}},
		"beta":            {func(c *TrainConfig) { c.Beta2 = 1 }, "beta2", []string{"below 1"}},
		"precision":       {func(c *TrainConfig) { c.Precision = "fp16" }, "precision", []string{`"fp16"`}},
		"kernel":          {func(c *TrainConfig) { c.Kernel = "cuda" }, "kernel", []string{`"cuda"`}},
		"eval interval":   {func(c *TrainConfig) { c.EvalInterval = 30_001 }, "eval_interval", []string{"divisor of epochs 100000"}},
		"negative warmup": {func(c *TrainConfig) { c.LRWarmupSteps = -1 }, "lr_warmup_steps", []string{"-1"}},
		"seed":            {func(c *TrainConfig) { c.Seed = -3 }, "seed", []string{"-3"}},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := PresetHRMv1()
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

func TestEveryPlacementWithItsDefaultsIsValid(t *testing.T) {
	for _, p := range []string{PlacementPostNorm, PlacementDeepNorm, PlacementDeepLoop, PlacementPreNorm} {
		base := PresetLaptop()
		c := base
		c.Arch.Placement = p
		c.Follow(base, func(string) bool { return false })
		require.NoError(t, c.Validate(), p)
		exponent, inner := deeploop.Placement(p).Defaults()
		require.Equal(t, exponent, c.Arch.PH)
		require.Equal(t, exponent, c.Arch.PL)
		require.Equal(t, inner, c.Arch.InnerNorm)
	}
}

// The name turns a configuration of one architecture into one of the other.
func TestFollowOfTheName(t *testing.T) {
	none := func(string) bool { return false }
	base := PresetLaptop()
	c := base
	c.Arch.Name, c.Arch.Placement = NameTRM, PlacementDeepLoop
	c.Follow(base, none)
	require.NoError(t, c.Validate())
	require.Equal(t, []any{0, 2, 16, true, 0., .5}, []any{c.Arch.HLayers, c.Arch.LLayers, c.Arch.PuzzleEmbSlots, c.Arch.NoACTContinue, c.Arch.PH, c.Arch.PL})
	c = base
	c.Arch.Name, c.Arch.PuzzleEmbDim = NameTRM, 0
	c.Follow(base, func(key string) bool { return key == "arch.puzzle_emb_ndim" })
	require.NoError(t, c.Validate())
	require.Zero(t, c.Arch.PuzzleEmbLen())

	base = PresetTRM()
	c = base
	c.Arch.Name = NameHRM
	c.Follow(base, none)
	require.NoError(t, c.Validate())
	require.Equal(t, []any{2, 2, 0, false}, []any{c.Arch.HLayers, c.Arch.LLayers, c.Arch.PuzzleEmbSlots, c.Arch.NoACTContinue})
}

func TestFollowLeavesChosenKeysAlone(t *testing.T) {
	base := PresetLaptop()
	chosen := func(keys ...string) func(string) bool {
		return func(k string) bool {
			for _, c := range keys {
				if c == k {
					return true
				}
			}
			return false
		}
	}

	c := base
	c.Arch.HiddenSize = 256
	c.Follow(base, chosen("arch.hidden_size"))
	require.Equal(t, 256, c.Arch.PuzzleEmbDim)

	c = base
	c.Arch.HiddenSize, c.Arch.PuzzleEmbDim = 256, 0
	c.Follow(base, chosen("arch.hidden_size", "arch.puzzle_emb_ndim"))
	require.Equal(t, 0, c.Arch.PuzzleEmbDim)

	c = base
	c.Arch.Placement, c.Arch.PL, c.Arch.InnerNorm = PlacementDeepLoop, 0.25, false
	c.Follow(base, chosen("arch.placement", "arch.p_L", "arch.inner_norm"))
	require.Equal(t, 0.5, c.Arch.PH)
	require.Equal(t, 0.25, c.Arch.PL)
	require.False(t, c.Arch.InnerNorm)

	c = base
	c.Epochs = 5
	c.Follow(base, chosen("epochs"))
	require.Equal(t, 0, c.Steps)
	c = base
	c.Epochs, c.Steps = 5, 9
	c.Follow(base, chosen("epochs", "steps"))
	require.Equal(t, 9, c.Steps)
}
