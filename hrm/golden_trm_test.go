package hrm

import (
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

// goldenTRM is a recorded case of TRM's reference; testdata/trm.md says how it
// was made. The weights are not stored: both sides compute them.
type goldenTRM struct {
	Arch struct {
		HCycles       int     `json:"H_cycles"`
		LCycles       int     `json:"L_cycles"`
		LLayers       int     `json:"L_layers"`
		Hidden        int     `json:"hidden_size"`
		Heads         int     `json:"num_heads"`
		Pos           string  `json:"pos_encodings"`
		PuzzleEmbDim  int     `json:"puzzle_emb_ndim"`
		Slots         int     `json:"puzzle_emb_len"`
		SeqLen        int     `json:"seq_len"`
		Batch         int     `json:"batch_size"`
		Identifiers   int     `json:"num_puzzle_identifiers"`
		Vocab         int     `json:"vocab_size"`
		Expansion     float64 `json:"expansion"`
		Eps           float64 `json:"rms_norm_eps"`
		Theta         float64 `json:"rope_theta"`
		HaltMaxSteps  int     `json:"halt_max_steps"`
		NoACTContinue bool    `json:"no_ACT_continue"`
		MLPT          bool    `json:"mlp_t"`
	}
	LossType string       `json:"loss_type"`
	Segments []goldenStep `json:"segments"`
	Eval     struct {
		Passes  int `json:"forward_passes"`
		Loss    float64
		Metrics map[string]float64
	}
}

func (g goldenTRM) config() TrainConfig {
	c, a := PresetTRM(), g.Arch
	c.Arch.HCycles, c.Arch.LCycles, c.Arch.LLayers = a.HCycles, a.LCycles, a.LLayers
	c.Arch.HiddenSize, c.Arch.NumHeads, c.Arch.Expansion = a.Hidden, a.Heads, a.Expansion
	c.Arch.PosEncodings, c.Arch.PuzzleEmbDim, c.Arch.PuzzleEmbSlots = a.Pos, a.PuzzleEmbDim, a.Slots
	c.Arch.SeqLen, c.Arch.VocabSize, c.Arch.NumPuzzleIdentifiers = a.SeqLen, a.Vocab, a.Identifiers
	c.Arch.HaltMaxSteps, c.Arch.HaltExplorationProb, c.Arch.NoACTContinue = a.HaltMaxSteps, 0, a.NoACTContinue
	c.Arch.MLPT = a.MLPT
	c.Arch.Loss.LossType, c.Arch.RMSNormEps, c.Arch.RopeTheta = g.LossType, a.Eps, a.Theta
	c.GlobalBatchSize = a.Batch
	return c
}

// computed fills a tensor with the numbers of its name, times a power of 2.
func computed(name string, b kernel.Buf, cols int) {
	scale := math.Exp2(math.RoundToEven(math.Log2(math.Sqrt(12 / float64(cols)))))
	if strings.Contains(name, ".layers.") {
		scale /= 2 // else differences grow from call to call
	}
	switch name {
	case nameHInit, nameLInit:
		scale = 4
	case nameTable:
		scale = 2
	case "q_head.bias":
		scale = 1
	}
	var h uint32
	for _, c := range []byte(name) {
		h = h*31 + uint32(c)
	}
	for i := range b.Len() {
		x := uint32(i)*2654435761 + h
		x ^= x >> 15
		x *= 0x2c1b3c6d
		x ^= x >> 12
		x *= 0x297a2d39
		x ^= x >> 15
		b.SetAt(i, scale*(float64(x>>8)/(1<<24)-.5))
	}
}

func TestGoldenTRM(t *testing.T) {
	for _, path := range goldentest.Glob(t, "testdata", "trm_*.json") {
		var g goldenTRM
		f := goldentest.Open(t, path, &g)
		t.Run(goldentest.Name(path), func(t *testing.T) {
			for bn, be := range picktest.Backends(t, 2) {
				t.Run(bn, func(t *testing.T) { g.check(t, f, be) })
			}
		})
	}
}

// check runs segments on fixed weights: what each leaves, and the gradients of
// some.
func (g goldenTRM) check(t *testing.T, f *safetensors.File, be kernel.Backend) {
	c := g.config()
	m, err := NewModel(c.Arch, kernel.Float32, 1)
	require.NoError(t, err)
	for _, w := range m.foreignTensors("") {
		computed(w.Name, w.Data, w.Shape[len(w.Shape)-1])
	}
	for _, p := range m.Params() {
		p.Changed()
	}
	l, err := NewLearner(m, be, c, 10)
	require.NoError(t, err)
	s := l.Segment
	defer s.Close()
	rows := func(k int) Rows { return goldenRows(t, f, fmt.Sprintf("batch%d.", k)) }
	compare := func(name string, got kernel.Buf, tol float64) {
		require.True(t, stored(t, f, name, got, tol, 0, func(want []float32, at func(int) int) {
			near(t, name, want, func(k int) float64 { return got.At(at(k)) }, tol, 0)
		}), "no %s in the file", name)
	}
	logits := func() kernel.Buf { // of the grid's positions
		all, v := s.Logits(), c.Arch.VocabSize
		grid := kernel.Alloc(kernel.Float32, g.Arch.Batch*g.Arch.SeqLen*v)
		for i := range grid.Len() {
			grid.SetAt(i, all.At(positions(m.Config, i/v)*v+i%v))
		}
		return grid
	}
	gradients := 0
	for i, want := range g.Segments {
		k, tol := i+1, 5e-5
		key := func(s string) string { return fmt.Sprintf("step%d.%s", k, s) }
		got, err := l.Forward(rows(k))
		require.NoError(t, err)
		ids, err := f.Int32s(key("puzzle_identifiers"))
		require.NoError(t, err)
		require.Equal(t, ids, l.Carry.Current.IDs)
		compare(key("logits"), logits(), tol)
		compare(key("q_halt_logits"), kernel.F64(s.Q.QHalt), tol)
		compare(key("q_continue_logits"), kernel.F64(s.Q.QContinue), tol)
		require.Equal(t, !g.Arch.NoACTContinue, f.Has(key("target_q_continue")))
		if !g.Arch.NoACTContinue {
			compare(key("target_q_continue"), kernel.F64(s.Q.Target), tol)
		}
		compare(key("z_H"), s.ZH, tol)
		compare(key("z_L"), s.ZL, tol)
		require.Equal(t, want.Halted, l.Carry.Halted)
		require.Equal(t, want.Steps, l.Carry.Steps)
		require.InEpsilon(t, want.Loss, got.Loss(), 1e-5)
		sameMetrics(t, want.Metrics, got)
		if !f.Has(fmt.Sprintf("grad%d.q_head.bias", k)) {
			continue
		}
		gradients++
		check := func(name string, grad kernel.Buf) {
			name = fmt.Sprintf("grad%d.%s", k, name)
			require.True(t, stored(t, f, name, grad, 1e-4, 0, func(want []float32, at func(int) int) {
				goldentest.Relative(t, name, want, func(k int) float64 { return grad.At(at(k)) }, 1e-4)
			}), "no %s in the file", name)
		}
		for _, p := range l.Params {
			check(p.Name, p.G)
		}
		if p := s.Puzzle; p != nil {
			check(p.Name, p.Grad())
		}
	}
	require.GreaterOrEqual(t, gradients, 2)

	segments := 0
	got, err := NewEvaluator(s).Run(t.Context(), rows(1), func(k int) {
		segments = k
		compare(fmt.Sprintf("eval%d.q_halt_logits", k), kernel.F64(s.Q.QHalt), 5e-5)
	})
	require.NoError(t, err)
	require.Equal(t, g.Eval.Passes, segments)
	compare("eval.logits", logits(), 5e-5)
	require.InEpsilon(t, g.Eval.Loss, got.Loss(), 1e-5)
	sameMetrics(t, g.Eval.Metrics, got)
}
