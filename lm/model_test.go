package lm

import (
	"context"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"deeploop/deeploop"
	"deeploop/internal/kernel"
	"deeploop/internal/kernel/ref"
	"deeploop/internal/optim"
)

// tiny is a training that takes milliseconds.
func tiny() TrainConfig {
	c := PresetTesting()
	c.Arch.Layers, c.Arch.Loops = 2, 2
	c.Arch.HiddenSize, c.Arch.NumHeads, c.Arch.MLPWidth = 8, 2, 12
	c.Arch.Context, c.Arch.VocabSize = 6, 11
	c.BatchSize, c.GradAccum = 2, 1
	return c
}

// place changes the placement with what follows from it.
func place(p deeploop.Placement) func(*TrainConfig) {
	return func(c *TrainConfig) {
		base := *c
		c.Arch.Placement = string(p)
		c.Follow(base, func(string) bool { return false })
	}
}

// variants turns every switch of model and step each way.
func variants() map[string]func(*TrainConfig) {
	v := map[string]func(*TrainConfig){
		"no embed_norm":    func(c *TrainConfig) { c.Arch.EmbedNorm = false },
		"deeploop outer":   func(c *TrainConfig) { c.Arch.InnerNorm = false },
		"deeploop alphas":  func(c *TrainConfig) { c.Arch.Alpha, c.Arch.Beta = 3, .5 },
		"deeploop p":       func(c *TrainConfig) { c.Arch.P = .3 },
		"more heads":       func(c *TrainConfig) { c.Arch.HiddenSize, c.Arch.NumHeads = 12, 3 },
		"gpt2 init":        func(c *TrainConfig) { c.Arch.Init, c.Arch.MLP = InitGPT2, MLPGELU },
		"xavier init":      func(c *TrainConfig) { c.Arch.Init = InitXavier },
		"stored depth":     func(c *TrainConfig) { place(deeploop.PreNorm)(c); c.Arch.InitDepth = DepthStored },
		"one layer":        func(c *TrainConfig) { c.Arch.Layers = 1 },
		"one token":        func(c *TrainConfig) { c.Arch.Context, c.BatchSize = 1, 5 },
		"grad_accum":       func(c *TrainConfig) { c.GradAccum = 3 },
		"grad_accum loops": func(c *TrainConfig) { c.GradAccum, c.CheckpointLoops = 2, true },
	}
	for _, p := range []deeploop.Placement{deeploop.DeepLoop, deeploop.DeepNorm, deeploop.PreNorm, deeploop.PostNorm} {
		for _, qk := range []bool{false, true} {
			for _, gain := range []bool{false, true} {
				v[fmt.Sprintf("%s qk_norm=%t norm_gain=%t", p, qk, gain)] = func(c *TrainConfig) {
					place(p)(c)
					c.Arch.QKNorm, c.Arch.NormGain = qk, gain
				}
			}
		}
		for loops := 1; loops <= 3; loops++ {
			v[fmt.Sprintf("%s loops=%d", p, loops)] = func(c *TrainConfig) { place(p)(c); c.Arch.Loops = loops }
			v[fmt.Sprintf("%s loops=%d checkpoint_loops", p, loops)] = func(c *TrainConfig) {
				place(p)(c)
				c.Arch.Loops, c.CheckpointLoops = loops, true
			}
		}
		for _, final := range []string{On, Off} {
			v[fmt.Sprintf("%s final_norm=%s", p, final)] = func(c *TrainConfig) { place(p)(c); c.Arch.FinalNorm = final }
		}
		for _, mlp := range []string{MLPGELU, MLPGELUErf, MLPReLU2} {
			v[fmt.Sprintf("%s mlp=%s", p, mlp)] = func(c *TrainConfig) { place(p)(c); c.Arch.MLP = mlp }
		}
	}
	for _, s := range []string{deeploop.SwiGLUBetaUpDown, deeploop.SwiGLUBetaDown} {
		v["swiglu_beta "+s] = func(c *TrainConfig) { c.Arch.SwiGLUBeta = s }
	}
	return v
}

// eachVariant runs a test on every variant.
func eachVariant(t *testing.T, f func(t *testing.T, c TrainConfig)) {
	all := variants()
	for _, name := range slices.Sorted(maps.Keys(all)) {
		t.Run(name, func(t *testing.T) {
			c := tiny()
			all[name](&c)
			require.NoError(t, c.Validate())
			f(t, c)
		})
	}
}

// randomBatches gives the same batches each time it is called with a seed; some
// labels are left out.
func randomBatches(c TrainConfig, seed uint64) func(inputs, labels []int32) error {
	r := rand.New(rand.NewPCG(seed, 9))
	return func(inputs, labels []int32) error {
		for i := range inputs {
			inputs[i], labels[i] = r.Int32N(int32(c.Arch.VocabSize)), r.Int32N(int32(c.Arch.VocabSize))
		}
		return nil
	}
}

// shake moves all parameters, so that gains are no longer one and a gradient
// that forgets them shows.
func shake(m *Model, seed uint64) {
	r := rand.New(rand.NewPCG(seed, 1))
	for _, p := range m.Params() {
		for i := range p.Data.Len() {
			p.Data.SetAt(i, p.Data.At(i)+.2*r.NormFloat64())
		}
		p.Changed()
	}
}

func newTestLearner(t *testing.T, c TrainConfig, act kernel.DType, be kernel.Backend) *Learner {
	t.Helper()
	m, err := NewModel(c.Arch, act, 3)
	require.NoError(t, err)
	l, err := NewLearner(m, be, c)
	require.NoError(t, err)
	t.Cleanup(l.Close)
	return l
}

// Gradient of the whole model against central differences in float64.
func TestModelGradient(t *testing.T) {
	be := ref.New(1)
	eachVariant(t, func(t *testing.T, c TrainConfig) {
		l := newTestLearner(t, c, kernel.Float64, be)
		shake(l.Model, 5)
		loss := func() float64 {
			got, err := l.gradients(randomBatches(c, 7))
			require.NoError(t, err)
			return got.Loss
		}
		loss()
		for _, p := range l.Model.Params() {
			grads := slices.Clone(p.Grad().Float64s())
			for i := 0; i < p.Data.Len(); i += max(1, p.Data.Len()/5) {
				const h = 1e-6
				w := p.Data.At(i)
				at := func(x float64) float64 {
					p.Data.SetAt(i, x)
					p.Changed()
					return loss()
				}
				num := (at(w+h) - at(w-h)) / (2 * h)
				at(w)
				require.InDelta(t, num, grads[i], 1e-8+1e-5*math.Abs(num), "%s[%d]", p.Name, i)
			}
		}
	})
}

// Every variant learns to repeat a batch, in all precisions.
func TestEveryVariantLearns(t *testing.T) {
	be := ref.New(1)
	for _, act := range []kernel.DType{kernel.Float32, kernel.BFloat16} {
		t.Run(act.String(), func(t *testing.T) {
			eachVariant(t, func(t *testing.T, c TrainConfig) {
				c.LR, c.LRMinRatio, c.LRWarmupSteps, c.WeightDecay = 2e-2, 1, 1, 0
				l := newTestLearner(t, c, act, be)
				var first, last float64
				for i := range 80 {
					got, err := l.Step(consistent(c, 1))
					require.NoError(t, err)
					if i == 0 {
						first = got.Loss
					}
					last = got.Loss
				}
				require.InDelta(t, math.Log(float64(c.Arch.VocabSize)), first, .5, "a fresh model guesses")
				require.Less(t, last, .5*first)
			})
		})
	}
}

// consistent gives batches in which a token always has the same successor,
// which any model can learn.
func consistent(c TrainConfig, seed uint64) func(inputs, labels []int32) error {
	r := rand.New(rand.NewPCG(seed, 9))
	v := c.Arch.VocabSize
	after := r.Perm(v)
	return func(inputs, labels []int32) error {
		for i := range inputs {
			x := r.IntN(v)
			inputs[i], labels[i] = int32(x), int32(after[x])
		}
		return nil
	}
}

// grad_accum batches of B sequences are one batch of all of them.
func TestGradAccumEqualsOneBatch(t *testing.T) {
	be := ref.New(1)
	c := tiny()
	c.BatchSize, c.GradAccum = 6, 1
	whole := newTestLearner(t, c, kernel.Float64, be)
	a, err := whole.gradients(randomBatches(c, 7))
	require.NoError(t, err)
	for _, loops := range []bool{false, true} {
		c.BatchSize, c.GradAccum, c.CheckpointLoops = 2, 3, loops
		parts := newTestLearner(t, c, kernel.Float64, be)
		b, err := parts.gradients(randomBatches(c, 7))
		require.NoError(t, err)
		require.InEpsilon(t, a.Loss, b.Loss, 1e-12)
		require.InEpsilon(t, a.GradNorm, b.GradNorm, 1e-12)
		for i, p := range whole.Params {
			for j := range p.G.Len() {
				require.InDelta(t, p.G.At(j), parts.Params[i].G.At(j), 1e-14, p.Name)
			}
		}
	}
}

// Clipping brings the norm of all gradients down to grad_clip: AdamW's first
// moment after a step is (1 - beta1) of the clipped gradient.
func TestStepClipsAllGradientsTogether(t *testing.T) {
	be := ref.New(1)
	for _, clip := range []float64{0, 1e-3, 1e3} {
		c := tiny()
		c.GradClip = clip
		l := newTestLearner(t, c, kernel.Float64, be)
		got, err := l.Step(randomBatches(c, 7))
		require.NoError(t, err)
		norm := 0.0
		for _, p := range l.Params {
			for i := range p.M.Len() {
				g := p.M.At(i) / (1 - c.Beta1)
				norm += g * g
			}
		}
		want := got.GradNorm
		if clip > 0 {
			want = min(want, clip)
		}
		require.InEpsilon(t, want, math.Sqrt(norm), 1e-3, "grad_clip %g", clip)
	}
}

// Gains have no weight decay, all matrices do.
func TestGainsDoNotDecay(t *testing.T) {
	c := tiny()
	l := newTestLearner(t, c, kernel.Float32, ref.New(1))
	gains := 0
	for i, p := range l.Model.Params() {
		require.Equal(t, p.Rows == 1, l.Params[i].NoDecay, p.Name)
		if p.Rows == 1 {
			gains++
		}
	}
	require.Equal(t, c.Arch.Layers*(4+2)+1, gains, "four norms and QK-norm of each block, and the embedding's")
}

// The average follows avg = rate·avg + (1 - rate)·w, evaluation sees it, and
// training goes on as without it.
func TestEMA(t *testing.T) {
	c := tiny()
	c.LR, c.LRWarmupSteps = 1e-2, 0
	plain := newTestLearner(t, c, kernel.Float32, ref.New(1))
	c.EMA, c.EMARate = true, .75
	l := newTestLearner(t, c, kernel.Float32, ref.New(1))
	want := make([]float64, l.Params[0].W.Len())
	for i := range want {
		want[i] = l.Params[0].W.At(i)
	}
	batches, same := randomBatches(c, 2), randomBatches(c, 2)
	for range 5 {
		a, err := l.Step(batches)
		require.NoError(t, err)
		b, err := plain.Step(same)
		require.NoError(t, err)
		require.Equal(t, b, a)
		for i := range want {
			want[i] = .75*want[i] + .25*l.Params[0].W.At(i)
		}
	}
	for i, w := range want {
		require.InDelta(t, w, l.EMA.Avg[0].At(i), 1e-6)
	}
	before := l.Params[0].W.At(3)
	j := &Job{Learner: l, config: c, data: Data{Val: tokensOf(50, c.Arch.VocabSize)}, loops: []int{2}}
	defer func() { j.eval.Close() }()
	raw, err := evaluateRaw(plain, c, j.data.Val)
	require.NoError(t, err)
	m, err := j.Evaluate(t.Context(), nil)
	require.NoError(t, err)
	require.Equal(t, before, l.Params[0].W.At(3), "weights are back in place")
	require.NotEqual(t, raw, m["loss"], "evaluation took the average")
}

func evaluateRaw(l *Learner, c TrainConfig, val Tokens) (float64, error) {
	j := &Job{Learner: l, config: c, data: Data{Val: val}, loops: []int{2}}
	defer func() { j.eval.Close() }()
	m, err := j.Evaluate(context.Background(), nil)
	return m["loss"], err
}

// A loss that is not finite is named with what upstream of it is not finite
// either, and the step changes nothing.
func TestBrokenNumbersStopAStep(t *testing.T) {
	for want, spoil := range map[string]func(l *Learner){
		"weight of blocks.1.mlp.down.weight is NaN at element 5": func(l *Learner) {
			i := slices.IndexFunc(l.Params, func(p optim.Param) bool { return p.Name == "blocks.1.mlp.down.weight" })
			l.Params[i].W.SetAt(5, math.NaN())
		},
		"loss is ": func(l *Learner) {
			for i := range l.Model.Embed.Data.Len() {
				l.Model.Embed.Data.SetAt(i, 3e38)
			}
			for i := range l.Model.EmbedGain.Data.Len() {
				l.Model.EmbedGain.Data.SetAt(i, 3e38)
			}
		},
	} {
		c := tiny()
		l := newTestLearner(t, c, kernel.Float32, ref.New(1))
		spoil(l)
		for _, p := range l.Model.Params() {
			p.Changed()
		}
		_, err := l.Step(randomBatches(c, 1))
		var broken *optim.NonFinite
		require.ErrorAs(t, err, &broken)
		require.ErrorContains(t, err, want)
		require.Zero(t, l.StepsDone)
		for _, p := range l.Params {
			for i := range p.M.Len() {
				require.Zero(t, p.M.At(i))
			}
		}
	}
}

// Weights of one seed are those of every placement before beta, which scales
// value rows, output and MLP (A.2).
func TestBetaScalesWhatItShould(t *testing.T) {
	c := tiny().Arch
	c.Placement, c.P, c.InnerNorm = string(deeploop.PostNorm), 0, false
	plain, err := NewModel(c, kernel.Float32, 3)
	require.NoError(t, err)
	c.Placement, c.P, c.Beta = string(deeploop.DeepLoop), .5, .25
	scaled, err := NewModel(c, kernel.Float32, 3)
	require.NoError(t, err)
	d := c.HiddenSize
	for i, p := range plain.Params() {
		q := scaled.Params()[i]
		require.Equal(t, p.Name, q.Name)
		for j := range p.Data.Len() {
			beta := .25
			if p.Rows == 1 || p == plain.Embed || strings.Contains(p.Name, "qkv") && j < 2*d*d {
				beta = 1
			}
			require.InDelta(t, beta*p.Data.At(j), q.Data.At(j), 1e-7, p.Name)
		}
	}
}

// Standard deviations of the initialisations (A.5, B).
func TestInitialisations(t *testing.T) {
	c := PresetTesting().Arch
	c.Layers, c.Loops, c.HiddenSize, c.NumHeads, c.VocabSize = 2, 4, 96, 2, 300
	c.Placement, c.P, c.InnerNorm = string(deeploop.PreNorm), 0, false
	c.MLPWidth = 256
	for name, want := range map[string]struct {
		change  func(*Config)
		in, out float64 // each of q, k and v; attention output
	}{
		"ddl executed":  {func(c *Config) {}, .5 / math.Sqrt(96), .5 / math.Sqrt(96) / math.Sqrt(8)},
		"ddl stored":    {func(c *Config) { c.InitDepth = DepthStored }, .5 / math.Sqrt(96), .5 / math.Sqrt(96) / math.Sqrt(2)},
		"ddl postnorm":  {func(c *Config) { c.Placement = string(deeploop.PostNorm) }, .5 / math.Sqrt(96), .5 / math.Sqrt(96)},
		"gpt2 executed": {func(c *Config) { c.Init = InitGPT2 }, .02, .02 / math.Sqrt(16)},
		"gpt2 stored":   {func(c *Config) { c.Init, c.InitDepth = InitGPT2, DepthStored }, .02, .02 / math.Sqrt(4)},
		"xavier":        {func(c *Config) { c.Init = InitXavier }, math.Sqrt(2. / (2 * 96)), math.Sqrt(2. / (2 * 96))},
	} {
		c := c
		want.change(&c)
		m, err := NewModel(c, kernel.Float32, 3)
		require.NoError(t, err)
		std := func(b kernel.Buf) float64 {
			s := 0.0
			for i := range b.Len() {
				s += b.At(i) * b.At(i)
			}
			return math.Sqrt(s / float64(b.Len()))
		}
		require.InEpsilon(t, embedStd, std(m.Embed.Data), .03, name)
		require.InEpsilon(t, want.in, std(m.Blocks.Blocks[1].QKV.Data), .03, name)
		require.InEpsilon(t, want.out, std(m.Blocks.Blocks[1].O.Data), .03, name)
	}
}
