package lm

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"deeploop/deeploop"
	"deeploop/internal/goldentest"
	"deeploop/internal/kernel"
	"deeploop/internal/kernel/pick/picktest"
	"deeploop/internal/safetensors"
)

// goldenCase is a recorded case of ../shared/golden/README.md, section 6.
type goldenCase struct {
	Placement      string
	K, R, D, Heads int
	FFN, Vocab     int
	T, B           int
	P, Eps         float64
	QKNorm         bool    `json:"qk_norm"`
	FinalNorm      bool    `json:"final_norm"`
	RopeBase       float64 `json:"rope_base"`
	Alpha, Beta    float64
	Loss           float64
	KappaG         map[string]float64  `json:"kappa_G"`
	Cosine         map[string]*float64 `json:"mean_pairwise_cosine"`
	AdamW          struct {
		LR, Eps, Clip float64
		Betas         [2]float64
		WeightDecay   float64 `json:"weight_decay"`
	}
	Losses    []float64
	GradNorms []float64 `json:"grad_norms"`
}

func (g goldenCase) config() TrainConfig {
	c := PresetTesting()
	a := &c.Arch
	a.Layers, a.Loops, a.HiddenSize, a.NumHeads, a.Context = g.K, g.R, g.D, g.Heads, g.T
	a.MLPWidth, a.VocabMultiple, a.VocabSize = g.FFN, 1, g.Vocab
	a.Placement = g.Placement
	a.P, a.InnerNorm = deeploop.Placement(g.Placement).Defaults()
	if deeploop.Placement(g.Placement).Scaled() {
		a.P = g.P
		if math.Abs(math.Pow(2*float64(g.K*g.R), g.P)-g.Alpha) > 1e-9 { // then golden compares the rule's with it
			a.Alpha, a.Beta = g.Alpha, g.Beta
		}
	}
	a.QKNorm, a.FinalNorm, a.RMSNormEps, a.RopeTheta = g.QKNorm, Off, g.Eps, g.RopeBase
	if g.FinalNorm {
		a.FinalNorm = On
	}
	c.BatchSize, c.GradAccum = g.B, 1
	o := g.AdamW
	c.LR, c.LRMinRatio, c.LRWarmupSteps = o.LR, 1, 0
	c.Beta1, c.Beta2, c.Eps, c.WeightDecay, c.GradClip = o.Betas[0], o.Betas[1], o.Eps, o.WeightDecay, o.Clip
	return c
}

// Cases hold no data of others, so copies stand in testdata and a bare clone
// tests itself.
func TestGoldenLM(t *testing.T) {
	for _, path := range goldentest.Cases(t, "testdata", "lm_*.json") {
		var g goldenCase
		f := goldentest.Open(t, path, &g)
		t.Run(goldentest.Name(path), func(t *testing.T) {
			for name, be := range picktest.Backends(t, 2) {
				t.Run(name, func(t *testing.T) { golden(t, g, f, be) })
			}
		})
	}
}

// A case's alpha and beta are in force, whatever its p.
func TestGoldenCaseSetsAlpha(t *testing.T) {
	for alpha, want := range map[float64]float64{2: 0, 3: 3} {
		g := goldenCase{Placement: "deeploop", K: 1, R: 2, D: 8, Heads: 2, FFN: 8, Vocab: 11, T: 4, Eps: 1e-6, RopeBase: 1e4, P: .5, Alpha: alpha, Beta: .25}
		require.Equal(t, want, g.config().Arch.Alpha)
		m, err := NewModel(g.config().Arch, kernel.Float32, 1)
		require.NoError(t, err)
		require.InEpsilon(t, alpha, m.Blocks.Residual.Alpha, 1e-12)
		require.InEpsilon(t, .25, m.Blocks.Beta, 1e-12)
	}
}

// loadInit reads the weights whose names start with prefix.
func loadInit(t *testing.T, m *Model, f *safetensors.File, prefix string) {
	loaded := 0
	for _, p := range m.Params() {
		v, err := f.Float32s(prefix + p.Name)
		require.NoError(t, err)
		require.Len(t, v, p.Data.Len(), p.Name)
		for i, x := range v {
			p.Data.SetAt(i, float64(x))
		}
		p.Changed()
		loaded++
	}
	for _, name := range f.Names() {
		if strings.HasPrefix(name, prefix) {
			loaded--
		}
	}
	require.Zero(t, loaded, "tensors in the file that the model has not")
}

// golden compares one case with tolerances of the README's section 6.
func golden(t *testing.T, g goldenCase, f *safetensors.File, be kernel.Backend) {
	c := g.config()
	f32 := func(name string) []float32 {
		v, err := f.Float32s(name)
		require.NoError(t, err)
		return v
	}
	tokens, err := f.Int32s("tokens")
	require.NoError(t, err)
	batches := 0
	next := func(n int) func(inputs, labels []int32) error {
		batches = n
		return func(inputs, labels []int32) error {
			for b := range g.B {
				row := tokens[(batches*g.B+b)*(g.T+1):]
				copy(inputs[b*g.T:(b+1)*g.T], row)
				copy(labels[b*g.T:(b+1)*g.T], row[1:])
			}
			batches++
			return nil
		}
	}
	fresh := func() *Model {
		m, err := NewModel(c.Arch, kernel.Float32, 1)
		require.NoError(t, err)
		loadInit(t, m, f, "init.")
		if m.Blocks.Residual.Placement.Scaled() {
			require.InEpsilon(t, g.Alpha, m.Blocks.Residual.Alpha, 1e-12)
			require.InEpsilon(t, g.Beta, m.Blocks.Beta, 1e-12)
		}
		return m
	}
	m := fresh()

	forward, err := NewForward(m, be, g.B, g.T)
	require.NoError(t, err)
	defer forward.Close()
	require.NoError(t, next(0)(forward.Tokens, forward.Loss.Labels))
	require.NoError(t, forward.Embed())
	states := f32("states")
	for r := range g.R {
		require.NoError(t, forward.Round())
		n := forward.X.Len()
		near(t, fmt.Sprintf("state after round %d", r), states[r*n:(r+1)*n], forward.X.At, 1e-5)
	}
	require.NoError(t, forward.Head())
	require.InEpsilon(t, g.Loss, forward.Loss.Sum, 1e-6)
	logits, err := forward.Logits()
	require.NoError(t, err)
	near(t, "logits", f32("logits"), logits.At, 1e-5)

	for _, how := range []string{"flat", "recompute"} {
		c.CheckpointLoops = how == "recompute"
		m := fresh()
		l, err := NewLearner(m, be, c)
		require.NoError(t, err)
		defer l.Close()
		got, err := l.gradients(next(0))
		require.NoError(t, err)
		require.InEpsilon(t, g.Loss, got.Loss, 1e-6, how)
		for _, p := range l.Params {
			goldentest.Relative(t, how+" gradient of "+p.Name, f32("grad."+p.Name), p.G.At, 2e-5)
		}
		step := next(1)
		for i, want := range g.Losses {
			got, err := l.Step(step)
			require.NoError(t, err)
			require.InEpsilon(t, want, got.Loss, 1e-5, "%s loss before step %d", how, i+1)
			require.InEpsilon(t, g.GradNorms[i], got.GradNorm, 1e-4, "%s norm of step %d", how, i+1)
		}
		for _, p := range l.Params {
			want := f32("after10." + p.Name)
			off := 0
			for i, w := range want {
				if !(math.Abs(float64(w)-p.W.At(i)) <= 1e-5) {
					off++
				}
			}
			require.LessOrEqual(t, float64(off), 0.001*float64(len(want)), "%s %s after ten steps", how, p.Name)
		}
	}

	k, err := NewKappa(m, be, g.B, g.T, 0)
	require.NoError(t, err)
	defer k.Close()
	inputs, labels := make([]int32, g.B*g.T), make([]int32, g.B*g.T)
	require.NoError(t, next(0)(inputs, labels))
	k.Set(inputs, labels)
	agreements, err := k.Measure(t.Context(), nil)
	require.NoError(t, err)
	require.Len(t, agreements, len(g.KappaG))
	for _, a := range agreements {
		require.InEpsilon(t, g.KappaG[a.Sublayer], a.KappaG, 1e-4, a.Sublayer)
		if want := g.Cosine[a.Sublayer]; want != nil {
			require.InDelta(t, *want, a.Cosine, 1e-4, a.Sublayer)
		} else {
			require.True(t, math.IsNaN(a.Cosine))
		}
	}
}

// near compares to tol of the largest magnitude.
func near(t *testing.T, name string, want []float32, got func(int) float64, tol float64) {
	t.Helper()
	largest, worst := 0.0, 0.0
	for i, w := range want {
		largest = math.Max(largest, math.Abs(float64(w)))
		worst = math.Max(worst, math.Abs(float64(w)-got(i)))
	}
	require.LessOrEqual(t, worst, tol*largest, name)
}
