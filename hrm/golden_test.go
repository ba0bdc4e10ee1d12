package hrm

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"deeploop/internal/goldentest"
	"deeploop/internal/kernel"
	"deeploop/internal/kernel/pick/picktest"
	"deeploop/internal/safetensors"
)

type goldenStep struct {
	Step        int
	Loss        float64
	AllHalted   bool `json:"all_halted"`
	Halted      []bool
	Steps       []int32
	AdamLR      float64 `json:"adam_lr"`
	PuzzleEmbLR float64 `json:"puzzle_emb_lr"`
	Metrics     map[string]float64
}

type goldenCase struct {
	Arch struct {
		HCycles         int     `json:"H_cycles"`
		LCycles         int     `json:"L_cycles"`
		HLayers         int     `json:"H_layers"`
		LLayers         int     `json:"L_layers"`
		Hidden          int     `json:"hidden_size"`
		Heads           int     `json:"num_heads"`
		Pos             string  `json:"pos_encodings"`
		PuzzleEmbDim    int     `json:"puzzle_emb_ndim"`
		SeqLen          int     `json:"seq_len"`
		Batch           int     `json:"batch_size"`
		Identifiers     int     `json:"num_puzzle_identifiers"`
		Vocab           int     `json:"vocab_size"`
		Expansion       float64 `json:"expansion"`
		HaltMaxSteps    int     `json:"halt_max_steps"`
		ExplorationProb float64 `json:"halt_exploration_prob"`
	}
	LossType        string  `json:"loss_type"`
	Eps             float64 `json:"rms_norm_eps"`
	Theta           float64 `json:"rope_theta"`
	GlobalBatchSize int     `json:"global_batch_size"`
	Optim           struct {
		Beta1, Beta2      float64
		WeightDecay       float64 `json:"weight_decay"`
		LR                float64
		LRMinRatio        float64 `json:"lr_min_ratio"`
		Warmup            int     `json:"lr_warmup_steps"`
		TotalSteps        int     `json:"total_steps"`
		PuzzleLR          float64 `json:"puzzle_emb_lr"`
		PuzzleWeightDecay float64 `json:"puzzle_emb_weight_decay"`
	}
	TrainSteps []goldenStep `json:"train_steps"`
	Eval       struct {
		Passes  int `json:"forward_passes"`
		Loss    float64
		Metrics map[string]float64
	}
}

func (g goldenCase) config() TrainConfig {
	c := PresetHRMv1()
	a := g.Arch
	c.Arch.HCycles, c.Arch.LCycles, c.Arch.HLayers, c.Arch.LLayers = a.HCycles, a.LCycles, a.HLayers, a.LLayers
	c.Arch.HiddenSize, c.Arch.NumHeads, c.Arch.Expansion = a.Hidden, a.Heads, a.Expansion
	c.Arch.PosEncodings, c.Arch.PuzzleEmbDim = a.Pos, a.PuzzleEmbDim
	c.Arch.SeqLen, c.Arch.VocabSize, c.Arch.NumPuzzleIdentifiers = a.SeqLen, a.Vocab, a.Identifiers
	c.Arch.HaltMaxSteps, c.Arch.HaltExplorationProb = a.HaltMaxSteps, a.ExplorationProb
	c.Arch.Loss.LossType, c.Arch.RMSNormEps, c.Arch.RopeTheta = g.LossType, g.Eps, g.Theta
	o := g.Optim
	c.GlobalBatchSize, c.Steps = g.GlobalBatchSize, o.TotalSteps
	c.Beta1, c.Beta2, c.WeightDecay, c.LR = o.Beta1, o.Beta2, o.WeightDecay, o.LR
	c.LRMinRatio, c.LRWarmupSteps = o.LRMinRatio, o.Warmup
	c.PuzzleEmbLR, c.PuzzleEmbWeightDecay = o.PuzzleLR, o.PuzzleWeightDecay
	return c
}

// tensor finds a model's tensor by its reference name.
func (m *Model) tensor(name string) (kernel.Buf, bool) {
	switch name {
	case "H_init":
		return m.HInit, true
	case "L_init":
		return m.LInit, true
	case "puzzle_emb.weights":
		return m.PuzzleTable, m.PuzzleTable.Len() > 0
	}
	for _, p := range m.Params() {
		if p.Name == name {
			return p.Data, true
		}
	}
	return kernel.Buf{}, false
}

func loadInit(t *testing.T, m *Model, f *safetensors.File, prefix string) {
	loaded := 0
	for _, name := range f.Names() {
		short, ok := strings.CutPrefix(name, prefix)
		if !ok {
			continue
		}
		b, ok := m.tensor(short)
		require.True(t, ok, "model has no tensor %s", short)
		v, err := f.Float32s(name)
		require.NoError(t, err)
		require.Len(t, v, b.Len(), name)
		for i, x := range v {
			b.SetAt(i, float64(x))
		}
		loaded++
	}
	want := len(m.Params()) + 2
	if m.PuzzleTable.Len() > 0 {
		want++
	}
	require.Equal(t, want, loaded, "tensors in the file")
	for _, p := range m.Params() {
		p.Changed()
	}
}

// near compares a flat tensor; off counts entries beyond tol.
func near(t *testing.T, name string, want []float32, got func(int) float64, tol, allowed float64) {
	t.Helper()
	off, worst := 0, 0.0
	for i, w := range want {
		d := math.Abs(float64(w) - got(i))
		if !(d <= tol) {
			off++
			worst = math.Max(worst, d)
		}
	}
	require.LessOrEqual(t, float64(off), allowed*float64(len(want)), "%s: %d of %d entries off by more than %g, worst %g", name, off, len(want), tol, worst)
}

// stored calls check with the tensor called name in the file, or its sample;
// at gives the place in the whole tensor. With a sample come the sum and the
// L2 norm of the whole, which got must match to tol of that norm; in the sum
// one entry in a thousand may also be off by flip, either way. It reports
// whether there is either.
func stored(t *testing.T, f *safetensors.File, name string, got kernel.Buf, tol, flip float64, check func(want []float32, at func(k int) int)) bool {
	t.Helper()
	n := got.Len()
	if f.Has(name) {
		v, err := f.Float32s(name)
		require.NoError(t, err)
		require.Len(t, v, n)
		check(v, func(k int) int { return k })
		return true
	}
	if !f.Has(name + "#sample") {
		return false
	}
	v, err := f.Float32s(name + "#sample")
	require.NoError(t, err)
	require.NotEmpty(t, v)
	check(v, func(k int) int { return k * n / len(v) })
	want, err := f.Float64s(name + "#stats")
	require.NoError(t, err)
	require.Len(t, want, 2)
	var sum, squares float64
	for i := range n {
		x := got.At(i)
		sum += x
		squares += x * x
	}
	require.InDelta(t, want[0], sum, tol*want[1]+flip*math.Sqrt(0.001*float64(n))+1e-12, "sum of %s", name)
	require.InDelta(t, want[1], math.Sqrt(squares), tol*want[1]+1e-12, "norm of %s", name)
	return true
}

func positions(c Config, at int) int { // grid row index -> state row index
	t, p := c.SeqLen, c.PuzzleEmbLen()
	return at/t*(t+p) + p + at%t
}

// Cases of ../shared/golden/README.md, section 1. Model fixtures hold no ARC
// grids, so copies stand in testdata and a bare clone tests itself.
func TestGoldenHRM(t *testing.T) {
	for _, path := range goldentest.Cases(t, "testdata", "hrm_*.json") {
		var g goldenCase
		f := goldentest.Open(t, path, &g)
		t.Run(goldentest.Name(path), func(t *testing.T) {
			for bn, be := range picktest.Backends(t, 2) {
				t.Run(bn, func(t *testing.T) { goldenHRM(t, g, f, be) })
			}
		})
	}
}

// goldenRows reads a recorded batch, the names of which begin with prefix.
func goldenRows(t *testing.T, f *safetensors.File, prefix string) (r Rows) {
	t.Helper()
	for name, to := range map[string]*[]int32{"inputs": &r.Inputs, "labels": &r.Labels, "puzzle_identifiers": &r.IDs} {
		var err error
		*to, err = f.Int32s(prefix + name)
		require.NoError(t, err)
	}
	return r
}

func goldenHRM(t *testing.T, g goldenCase, f *safetensors.File, be kernel.Backend) {
	const prefix = "model.inner."
	c := g.config()
	m, err := NewModel(c.Arch, kernel.Float32, 1)
	require.NoError(t, err)
	loadInit(t, m, f, "init."+prefix)
	l, err := NewLearner(m, be, c, c.Steps)
	require.NoError(t, err)
	defer l.Segment.Close()

	batch, seq, vocab := g.Arch.Batch, g.Arch.SeqLen, g.Arch.Vocab
	rows := func(key string) Rows { return goldenRows(t, f, key+".") }
	f32 := func(key string) []float32 {
		v, err := f.Float32s(key)
		require.NoError(t, err)
		return v
	}
	flip := 0.0
	for _, st := range g.TrainSteps {
		key := func(s string) string { return fmt.Sprintf("step%d.%s", st.Step, s) }
		tol := 5e-5
		if st.Step > 1 {
			tol = 5e-4
		}
		got, err := l.Forward(rows(key("batch")))
		require.NoError(t, err)
		require.Equal(t, rows(key("current")), l.Carry.Current)
		logits := l.Segment.Logits()
		near(t, key("logits"), f32(key("logits")), func(i int) float64 {
			return logits.At(positions(m.Config, i/vocab)*vocab + i%vocab)
		}, tol, 0)
		near(t, key("q_halt"), f32(key("q_halt_logits")), func(i int) float64 { return l.Segment.Q.QHalt[i] }, tol, 0)
		near(t, key("q_continue"), f32(key("q_continue_logits")), func(i int) float64 { return l.Segment.Q.QContinue[i] }, tol, 0)
		near(t, key("target"), f32(key("target_q_continue")), func(i int) float64 { return l.Segment.Q.Target[i] }, tol, 0)
		near(t, key("z_H"), f32(key("z_H")), l.Segment.ZH.At, tol, 0)
		near(t, key("z_L"), f32(key("z_L")), l.Segment.ZL.At, tol, 0)
		require.Equal(t, st.Halted, l.Carry.Halted)
		require.Equal(t, st.Steps, l.Carry.Steps)
		require.InEpsilon(t, st.Loss, got.Loss(), 1e-5)
		sameMetrics(t, st.Metrics, got)
		if st.Step == 1 {
			for i := range l.Params {
				p := &l.Params[i]
				require.True(t, stored(t, f, "grad1."+prefix+p.Name, p.G, 1e-4, 0, func(want []float32, at func(int) int) {
					goldentest.Relative(t, p.Name, want, func(k int) float64 { return p.G.At(at(k)) }, 1e-4)
				}), "no gradient of %s in the file", p.Name)
			}
			if p := l.Segment.Puzzle; p != nil {
				goldentest.Relative(t, p.Name, f32("grad1."+p.Name), p.Grad().At, 1e-4)
			}
		}
		require.NoError(t, l.Check(got))
		l.Update()
		require.InEpsilon(t, st.AdamLR, l.LR.At(l.StepsDone), 1e-12)
		if m.PuzzleTable.Len() > 0 {
			require.InEpsilon(t, st.PuzzleEmbLR, l.PuzzleLR.At(l.StepsDone), 1e-12)
		}
		flip += 2 * st.AdamLR // noise in the sign of a gradient near zero
		after := fmt.Sprintf("after%d.%s", st.Step, prefix)
		weights := func(name string, w kernel.Buf) {
			require.True(t, stored(t, f, after+name, w, 1e-4, flip, func(want []float32, at func(int) int) {
				near(t, name, want, func(k int) float64 { return w.At(at(k)) }, 1e-5, 0.001)
			}), "no %s%s in the file", after, name)
		}
		for _, p := range l.Params {
			weights(p.Name, p.W)
		}
		if m.PuzzleTable.Len() > 0 {
			weights("puzzle_emb.weights", m.PuzzleTable)
		}
	}

	e := NewEvaluator(l.Segment)
	got, err := e.Run(t.Context(), rows("step1.batch"), func(k int) {
		n := fmt.Sprintf("eval%d", k)
		near(t, "eval q_halt", f32(n+".q_halt_logits"), func(i int) float64 { return l.Segment.Q.QHalt[i] }, 5e-4, 0)
		near(t, "eval q_continue", f32(n+".q_continue_logits"), func(i int) float64 { return l.Segment.Q.QContinue[i] }, 5e-4, 0)
	})
	require.NoError(t, err)
	require.Equal(t, g.Eval.Passes, m.Config.HaltMaxSteps)
	logits := l.Segment.Logits()
	near(t, "eval.logits", f32("eval.logits"), func(i int) float64 {
		return logits.At(positions(m.Config, i/vocab)*vocab + i%vocab)
	}, 5e-4, 0)
	require.InEpsilon(t, g.Eval.Loss, got.Loss(), 1e-4)
	sameMetrics(t, g.Eval.Metrics, got)
	require.Equal(t, batch*seq, len(l.Carry.Current.Inputs))
}

func sameMetrics(t *testing.T, want map[string]float64, got StepMetrics) {
	t.Helper()
	raw, err := json.Marshal(got)
	require.NoError(t, err)
	var m map[string]float64
	require.NoError(t, json.Unmarshal(raw, &m))
	for k, w := range want {
		require.Contains(t, m, k)
		switch k {
		case "count", "exact_accuracy", "q_halt_accuracy", "steps":
			require.Equal(t, w, m[k], k)
		default:
			require.InDelta(t, w, m[k], 1e-4*math.Max(1, math.Abs(w)), k)
		}
	}
}

// One step of HRM with DeepLoop residuals, section 7.
func TestGoldenDeepLoopHRM(t *testing.T) {
	for _, path := range goldentest.Cases(t, "testdata", "deeploop_hrm_*.json") {
		var raw json.RawMessage
		f := goldentest.Open(t, path, &raw)
		t.Run(goldentest.Name(path), func(t *testing.T) {
			for bn, be := range picktest.Backends(t, 2) {
				t.Run(bn, func(t *testing.T) { goldenDeepLoop(t, raw, f, be) })
			}
		})
	}
}

func goldenDeepLoop(t *testing.T, raw json.RawMessage, f *safetensors.File, be kernel.Backend) {
	var g goldenCase
	require.NoError(t, json.Unmarshal(raw, &g.Arch))
	var flat struct {
		LossType  string  `json:"loss_type"`
		Eps       float64 `json:"rms_norm_eps"`
		Theta     float64 `json:"rope_theta"`
		InnerNorm bool    `json:"inner_norm"`
		NgMode    string  `json:"ng_mode"`
		PH        float64 `json:"p_H"`
		PL        float64 `json:"p_L"`
		N         int
		Alpha     map[string]float64
		Beta      map[string]float64
		Loss      float64
	}
	require.NoError(t, json.Unmarshal(raw, &flat))
	g.LossType, g.Eps, g.Theta, g.GlobalBatchSize = flat.LossType, flat.Eps, flat.Theta, g.Arch.Batch
	c := g.config()
	c.Arch.Placement, c.Arch.InnerNorm, c.Arch.NgMode = PlacementDeepLoop, flat.InnerNorm, flat.NgMode
	c.Arch.PH, c.Arch.PL = flat.PH, flat.PL
	m, err := NewModel(c.Arch, kernel.Float32, 1)
	require.NoError(t, err)
	require.Equal(t, flat.N, m.Config.EffectiveDepth())
	require.InEpsilon(t, flat.Alpha["H"], m.H.Residual.Alpha, 1e-12)
	require.InEpsilon(t, flat.Alpha["L"], m.L.Residual.Alpha, 1e-12)
	require.InEpsilon(t, flat.Beta["H"], m.H.Beta, 1e-12)
	require.InEpsilon(t, flat.Beta["L"], m.L.Beta, 1e-12)
	loadInit(t, m, f, "init.")
	l, err := NewLearner(m, be, c, 10)
	require.NoError(t, err)
	defer l.Segment.Close()

	f32 := func(key string) []float32 {
		v, err := f.Float32s(key)
		require.NoError(t, err)
		return v
	}
	got, err := l.Forward(goldenRows(t, f, ""))
	require.NoError(t, err)
	const tol = 5e-5
	vocab := g.Arch.Vocab
	logits := l.Segment.Logits()
	near(t, "logits", f32("logits"), func(i int) float64 {
		return logits.At(positions(m.Config, i/vocab)*vocab + i%vocab)
	}, tol, 0)
	near(t, "q_halt", f32("q_halt_logits"), func(i int) float64 { return l.Segment.Q.QHalt[i] }, tol, 0)
	near(t, "q_continue", f32("q_continue_logits"), func(i int) float64 { return l.Segment.Q.QContinue[i] }, tol, 0)
	near(t, "target", f32("target_q_continue"), func(i int) float64 { return l.Segment.Q.Target[i] }, tol, 0)
	near(t, "z_H", f32("z_H"), l.Segment.ZH.At, tol, 0)
	near(t, "z_L", f32("z_L"), l.Segment.ZL.At, tol, 0)
	require.InEpsilon(t, flat.Loss, got.Loss(), 1e-5)
	for _, p := range l.Params {
		goldentest.Relative(t, p.Name, f32("grad."+p.Name), p.G.At, 1e-4)
	}
	if p := l.Segment.Puzzle; p != nil {
		goldentest.Relative(t, p.Name, f32("grad."+p.Name), p.Grad().At, 1e-4)
	}
}
