package hrm

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"deeploop/deeploop"
	"deeploop/internal/kernel"
	"deeploop/internal/kernel/ref"
	"deeploop/internal/optim"
)

func tiny() TrainConfig {
	c := PresetTesting()
	c.Arch.HiddenSize, c.Arch.NumHeads, c.Arch.PuzzleEmbDim = 8, 2, 8
	c.Arch.Expansion = 1
	c.Arch.SeqLen, c.Arch.VocabSize, c.Arch.NumPuzzleIdentifiers = 6, 5, 4
	c.Arch.HaltExplorationProb = 0
	c.GlobalBatchSize = 2
	return c
}

func randomRows(c Config, batch int, seed uint64) Rows {
	r := rand.New(rand.NewPCG(seed, 9))
	rows := NewRows(batch, c.SeqLen)
	for i := range rows.Inputs {
		rows.Inputs[i] = int32(r.IntN(c.VocabSize))
		rows.Labels[i] = int32(r.IntN(c.VocabSize))
		if r.IntN(4) == 0 {
			rows.Labels[i] = -100
		}
	}
	for i := range rows.IDs {
		rows.IDs[i] = int32(r.IntN(c.NumPuzzleIdentifiers))
	}
	return rows
}

// variants turns every switch of the architecture each way.
func variants() map[string]func(*Config) {
	v := map[string]func(*Config){
		"postnorm":       func(*Config) {},
		"learned":        func(c *Config) { c.PosEncodings = PosLearned },
		"no task slot":   func(c *Config) { c.PuzzleEmbDim = 0 },
		"odd task slots": func(c *Config) { c.PuzzleEmbDim = 11 },
		"softmax":        func(c *Config) { c.Loss.LossType = LossSoftmax },
		"input_rms":      func(c *Config) { c.InputRMS = true },
		"input_rms gain": func(c *Config) { c.InputRMS, c.NormGain = true, true },
		"one segment":    func(c *Config) { c.HaltMaxSteps = 1 },
		"postnorm gain":  func(c *Config) { c.NormGain = true },
		"prenorm":        func(c *Config) { c.Placement = PlacementPreNorm },
		"prenorm gain":   func(c *Config) { c.Placement, c.NormGain = PlacementPreNorm, true },
		"deepnorm":       func(c *Config) { c.Placement, c.PH, c.PL = PlacementDeepNorm, .25, .25 },
		"deepnorm gain":  func(c *Config) { c.Placement, c.PH, c.PL, c.NormGain = PlacementDeepNorm, .25, .25, true },
		"deeploop":       func(c *Config) { c.Placement, c.PH, c.PL, c.InnerNorm = PlacementDeepLoop, .5, .5, true },
		"deeploop gain": func(c *Config) {
			c.Placement, c.PH, c.PL, c.InnerNorm, c.NormGain = PlacementDeepLoop, .5, .5, true, true
		},
		"deeploop outer":   func(c *Config) { c.Placement, c.PH, c.PL = PlacementDeepLoop, .5, .3 },
		"deeploop alphas":  func(c *Config) { c.Placement, c.AlphaH, c.BetaL = PlacementDeepLoop, 3, .25 },
		"more blocks":      func(c *Config) { c.HLayers, c.LLayers, c.HCycles, c.LCycles = 2, 1, 1, 3 },
		"deeploop code":    func(c *Config) { c.Placement, c.PH, c.PL, c.NgMode = PlacementDeepLoop, .5, .5, NgCode },
		"deeploop forward": func(c *Config) { c.Placement, c.PH, c.PL, c.NgMode = PlacementDeepLoop, .5, .5, NgForward },
	}
	trm := func(change func(*Config)) func(*Config) {
		return func(c *Config) {
			c.Name, c.HLayers, c.PuzzleEmbSlots, c.NoACTContinue = NameTRM, 0, 3, true
			change(c)
		}
	}
	v["trm"] = trm(func(*Config) {})
	v["trm continue"] = trm(func(c *Config) { c.NoACTContinue, c.PuzzleEmbSlots = false, 0 })
	v["trm deep"] = trm(func(c *Config) { c.LLayers, c.HCycles, c.LCycles = 2, 2, 4 })
	v["trm none"] = trm(func(c *Config) { c.PosEncodings = PosNone })
	v["trm mlp_t"] = trm(func(c *Config) { c.MLPT, c.PosEncodings, c.LLayers = true, PosNone, 2 })
	v["trm mlp_t continue learned"] = trm(func(c *Config) { c.MLPT, c.PosEncodings, c.NoACTContinue = true, PosLearned, false })
	v["trm mlp_t deeploop gain"] = trm(func(c *Config) {
		c.MLPT, c.PosEncodings = true, PosNone
		c.Placement, c.PL, c.InnerNorm, c.NormGain, c.SwiGLUBeta = PlacementDeepLoop, .5, true, true, SwiGLUBetaUpDown
	})
	v["trm mlp_t prenorm"] = trm(func(c *Config) {
		c.MLPT, c.PosEncodings, c.Placement, c.NormGain = true, PosNone, PlacementPreNorm, true
	})
	v["trm one call"] = trm(func(c *Config) { c.HCycles, c.LCycles, c.PosEncodings = 1, 1, PosLearned })
	v["trm prenorm gain"] = trm(func(c *Config) { c.Placement, c.NormGain = PlacementPreNorm, true })
	v["trm deeploop gain"] = trm(func(c *Config) {
		c.Placement, c.PL, c.InnerNorm, c.NormGain, c.NgMode = PlacementDeepLoop, .5, true, true, NgCode
	})
	for _, s := range []string{SwiGLUBetaUpDown, SwiGLUBetaDown} {
		v["swiglu_beta "+s] = func(c *Config) {
			c.Placement, c.PH, c.PL, c.SwiGLUBeta = PlacementDeepLoop, .5, .5, s
		}
	}
	return v
}

// Gradient of the whole model against central differences in float64, for
// every switch. The q target is a constant of the loss, so it is frozen.
func TestModelGradient(t *testing.T) {
	for name, change := range variants() {
		t.Run(name, func(t *testing.T) {
			c := tiny()
			change(&c.Arch)
			m, err := NewModel(c.Arch, kernel.Float64, 3)
			require.NoError(t, err)
			r := rand.New(rand.NewPCG(5, 6))
			for i := range m.PuzzleTable.Len() {
				m.PuzzleTable.SetAt(i, r.NormFloat64())
			}
			for i := range m.QHead.Data.Len() {
				m.QHead.Data.SetAt(i, r.NormFloat64())
			}
			l, err := NewLearner(m, ref.New(1), c, 10)
			require.NoError(t, err)
			defer l.Segment.Close()
			rows := randomRows(m.Config, c.GlobalBatchSize, 1)
			s := l.Segment

			// One-step gradient: the states that enter the last calls are
			// constants, so run the calls without gradient once.
			l.Carry.refill(s, rows)
			s.load(rows)
			require.NoError(t, s.Embed())
			_, _, err = s.calls(m.schedule.NoGrad(), s.ZH, s.ZL)
			require.NoError(t, err)
			zH, zL := kernel.Alloc(kernel.Float64, s.ZH.Len()), kernel.Alloc(kernel.Float64, s.ZL.Len())
			copy(zH.Bytes(), s.ZH.Bytes())
			copy(zL.Bytes(), s.ZL.Bytes())
			var target []float64
			loss := func() float64 {
				copy(s.ZH.Bytes(), zH.Bytes())
				copy(s.ZL.Bytes(), zL.Bytes())
				for _, p := range m.Params() {
					p.ZeroGrad()
				}
				require.NoError(t, s.train.Run())
				v := s.Loss.Sum + .5*s.Q.HaltSum
				if m.Config.asksQTarget() {
					if target == nil {
						target = append(target, s.Q.Target...)
					}
					for i, q := range s.Q.QContinue {
						v += .5 * (math.Max(q, 0) - q*target[i] + math.Log1p(math.Exp(-math.Abs(q))))
					}
				}
				return v / float64(c.GlobalBatchSize)
			}
			loss()
			params := m.Params()
			if s.Puzzle != nil {
				params = append(params, s.Puzzle)
			}
			for _, p := range params {
				grads := append([]float64(nil), p.Grad().Float64s()...)
				for i := 0; i < p.Data.Len(); i += max(1, p.Data.Len()/5) {
					h := 1e-6
					if m.H == m.L {
						h = 1e-7 // deep ones curve more
					}
					w := p.Data.At(i)
					p.Data.SetAt(i, w+h)
					p.Changed()
					up := loss()
					p.Data.SetAt(i, w-h)
					p.Changed()
					down := loss()
					p.Data.SetAt(i, w)
					p.Changed()
					num := (up - down) / (2 * h)
					require.InDelta(t, num, grads[i], 1e-7+1e-5*math.Abs(num), "%s[%d]", p.Name, i)
				}
			}
		})
	}
}

// Every variant learns to repeat two examples, in all precisions.
func TestEveryVariantLearns(t *testing.T) {
	for name, change := range variants() {
		for _, act := range []kernel.DType{kernel.Float32, kernel.BFloat16} {
			t.Run(fmt.Sprintf("%s/%v", name, act), func(t *testing.T) {
				c := tiny()
				change(&c.Arch)
				if c.Arch.PosEncodings == PosNone && !c.Arch.MLPT {
					t.Skip("equal tokens have equal answers without positions")
				}
				c.LR, c.LRWarmupSteps = 5e-3, 1 // at 1e-2 paths are chaotic
				steps := 60
				if c.Arch.OneNetwork() {
					steps, c.LR = 250, 2e-3
				}
				m, err := NewModel(c.Arch, act, 3)
				require.NoError(t, err)
				l, err := NewLearner(m, ref.New(1), c, 100)
				require.NoError(t, err)
				defer l.Segment.Close()
				rows := randomRows(m.Config, c.GlobalBatchSize, 1)
				var first, last float64
				for i := range steps {
					got, err := l.Step(rows)
					require.NoError(t, err)
					if i == 0 {
						first = got.LMLoss
					}
					last = got.LMLoss
				}
				require.Less(t, last, .5*first)
			})
		}
	}
}

func TestEffectiveDepth(t *testing.T) {
	c := PresetHRMv1().Arch
	c.SeqLen, c.VocabSize, c.NumPuzzleIdentifiers = 4, 12, 2
	for mode, n := range map[string]int{NgPaper: 12, NgCode: 8, NgForward: 24} {
		c.NgMode = mode
		require.Equal(t, n, c.EffectiveDepth(), mode)
	}
	c.NgMode = NgPaper
	rule := deeploop.Rule{P: .5, N: c.EffectiveDepth()}
	require.InDelta(t, 4.899, rule.Alpha(), 1e-3)
	require.InDelta(t, .1021, rule.Beta(), 1e-4)
	s, err := deeploop.Cycles(c.HCycles, c.LCycles, deeploop.LastCycle)
	require.NoError(t, err)
	require.Equal(t, 24, deeploop.Visits(s.Grad(), 4, 4), "gradient-visible visits of the last cycle")
	require.Equal(t, 2*24, deeploop.Visits(s.Calls, 4, 4))
	s, err = deeploop.Cycles(c.HCycles, c.LCycles, deeploop.LastCall)
	require.NoError(t, err)
	require.Equal(t, 16, deeploop.Visits(s.Grad(), 4, 4))
	require.Equal(t, []deeploop.Module{deeploop.L, deeploop.L, deeploop.H, deeploop.L}, s.NoGrad())
}

// TRM's cycle is all with gradient: 2 blocks, called L_cycles + 1 times.
func TestEffectiveDepthOfTRM(t *testing.T) {
	c := PresetTRM().Arch
	for mode, n := range map[string]int{NgPaper: 10, NgCode: 10, NgForward: 30} {
		c.NgMode = mode
		require.Equal(t, n, c.EffectiveDepth(), mode)
	}
	c.LCycles = 6
	s, err := c.schedule()
	require.NoError(t, err)
	require.Equal(t, 28, deeploop.Visits(s.Grad(), c.Blocks(deeploop.H), c.Blocks(deeploop.L)))
	require.Len(t, s.NoGrad(), 14)
}

// beta multiplies value rows, output and MLP; q and k rows, embeddings and
// heads are drawn the same with and without it.
func TestBetaScalesWhatItShould(t *testing.T) {
	c := tiny().Arch
	plain, err := NewModel(c, kernel.Float32, 3)
	require.NoError(t, err)
	c.Placement, c.PH, c.PL, c.BetaH, c.BetaL = PlacementDeepLoop, .5, .5, .25, .5
	scaled, err := NewModel(c, kernel.Float32, 3)
	require.NoError(t, err)
	d := c.HiddenSize
	for i, p := range plain.Params() {
		q := scaled.Params()[i]
		for j := range p.Data.Len() {
			want := p.Data.At(j)
			beta := 1.0
			switch {
			case p.Name[0] == 'H' && p.Name[1] == '_':
				beta = .25
			case p.Name[0] == 'L' && p.Name[1] == '_':
				beta = .5
			}
			if p.Rows == 3*d && j < 2*d*d { // q and k rows
				beta = 1
			}
			require.InDelta(t, want*beta, q.Data.At(j), 1e-7, p.Name)
		}
	}
}

// A moment that overflows would stop its weight without a word.
func TestCheckFindsBrokenMoments(t *testing.T) {
	c := tiny()
	m, err := NewModel(c.Arch, kernel.Float32, 1)
	require.NoError(t, err)
	l, err := NewLearner(m, ref.New(1), c, 10)
	require.NoError(t, err)
	j := &Job{Learner: l}
	defer j.Close()
	require.NoError(t, j.Check())
	l.Params[2].V.SetAt(3, math.Inf(1))
	require.ErrorContains(t, j.Check(), "moment of q_head.weight is +Inf at element 3")
}

// overflowHead makes a head whose weights are finite and whose logits are not.
func overflowHead(m *Model) {
	for i := range m.LMHead.Data.Len() {
		m.LMHead.Data.SetAt(i, 3e38)
	}
	m.LMHead.Changed()
}

// A loss that is not finite is named with the first thing upstream of it that
// is not either.
func TestBrokenLossNamesItsOrigin(t *testing.T) {
	for want, spoil := range map[string]func(l *Learner){
		"weight of H_level.":                func(l *Learner) { l.Model.H.Params()[0].Data.SetAt(1, math.NaN()) },
		"task embedding of puzzle_emb.":     func(l *Learner) { l.Model.PuzzleTable.SetAt(3*8+2, math.Inf(1)) },
		"state of z_L is NaN at element 0":  func(l *Learner) { l.Model.LInit.SetAt(0, math.NaN()) },
		"output of logits is ":              func(l *Learner) { overflowHead(l.Model) },
		"gradient of embed_tokens.embeddin": func(l *Learner) { l.Params[0].G.SetAt(0, math.NaN()) },
		"":                                  func(*Learner) {},
	} {
		for _, act := range []kernel.DType{kernel.Float32, kernel.BFloat16} {
			c := tiny()
			m, err := NewModel(c.Arch, act, 1)
			require.NoError(t, err)
			l, err := NewLearner(m, ref.New(1), c, 10)
			require.NoError(t, err)
			rows := randomRows(m.Config, c.GlobalBatchSize, 1)
			rows.IDs[0], rows.IDs[1] = 3, 3
			before := strings.HasPrefix(want, "weight") || strings.HasPrefix(want, "task") || strings.HasPrefix(want, "state")
			if before {
				spoil(l)
			}
			got, err := l.Forward(rows)
			require.NoError(t, err)
			if !before {
				spoil(l)
				got.LMLoss = math.NaN()
			}
			err = l.Check(got)
			l.Segment.Close()
			require.ErrorContains(t, err, "loss is NaN")
			require.ErrorContains(t, err, want)
			require.Equal(t, want == "", !strings.Contains(err.Error(), " of "), err)
			var broken *optim.NonFinite
			require.ErrorAs(t, err, &broken)
		}
	}
}

// An evaluation stops between two segments.
func TestEvaluatorStopsBetweenSegments(t *testing.T) {
	c := tiny()
	c.Arch.HaltMaxSteps = 8
	m, err := NewModel(c.Arch, kernel.Float32, 1)
	require.NoError(t, err)
	s, err := NewSegment(m, ref.New(1), 2)
	require.NoError(t, err)
	defer s.Close()
	ctx, cancel := context.WithCancel(t.Context())
	segments := 0
	_, err = NewEvaluator(s).Run(ctx, randomRows(m.Config, 2, 1), func(k int) {
		if segments = k; k == 3 {
			cancel()
		}
	})
	require.ErrorIs(t, err, context.Canceled)
	require.Equal(t, 3, segments)
}

func TestParamsCount(t *testing.T) {
	for name, change := range variants() {
		c := tiny().Arch
		change(&c)
		m, err := NewModel(c, kernel.Float32, 1)
		require.NoError(t, err)
		n := 0
		for _, p := range m.Params() {
			n += p.Data.Len()
		}
		require.Equal(t, c.NumParams(), n, name)
	}
}

// Halting: a row halts when q_halt > q_continue or at the last segment, and
// exploration keeps it for a drawn minimum.
func TestHalting(t *testing.T) {
	c := tiny()
	c.Arch.HaltMaxSteps = 5
	m, err := NewModel(c.Arch, kernel.Float32, 1)
	require.NoError(t, err)
	s, err := NewSegment(m, ref.New(1), 2)
	require.NoError(t, err)
	defer s.Close()
	carry := NewCarry(2, c.Arch.SeqLen)
	draw := rand.New(rand.NewPCG(1, 1))
	halt := func(steps int32, qHalt, qContinue, prob float64) bool {
		carry.Steps[0] = steps
		s.Q.QHalt[0], s.Q.QContinue[0] = qHalt, qContinue
		carry.halt(s, prob, draw)
		return carry.Halted[0]
	}
	require.True(t, halt(1, 1, 0, 0))
	require.False(t, halt(1, 0, 1, 0))
	require.False(t, halt(1, 0, 0, 0), "equal logits go on")
	require.True(t, halt(5, 0, 1, 0))
	m.Config.NoACTContinue = true
	require.True(t, halt(1, .1, 1, 0), "q_continue does not count")
	require.False(t, halt(1, 0, -1, 0))
	require.False(t, halt(1, -.1, -1, 0))
	m.Config.NoACTContinue = false
	require.False(t, halt(1, 1, 0, 1), "the minimum is at least 2")
	kept := map[int32]int{}
	for range 4000 {
		for n := int32(2); n <= 5; n++ {
			if !halt(n, 1, 0, 1) {
				kept[n]++
			}
		}
	}
	// the minimum is uniform in {2..5}: a row with n segments is kept when it
	// is above n
	require.InDelta(t, 3000, kept[2], 150)
	require.InDelta(t, 2000, kept[3], 150)
	require.InDelta(t, 1000, kept[4], 150)
	require.Zero(t, kept[5])
}
