package lm

import (
	"context"
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"deeploop/deeploop"
	"deeploop/internal/kernel"
	"deeploop/internal/kernel/ref"
)

func measureFull(t *testing.T, m *Model, c TrainConfig, group, iterations int) Agreements {
	t.Helper()
	k, err := NewFullKappa(m, ref.New(1), c.BatchSize, c.Arch.Context, group, iterations)
	require.NoError(t, err)
	defer k.Close()
	require.NoError(t, randomBatches(c, 7)(k.batch.tokens, k.batch.loss.Labels))
	as, err := k.Measure(t.Context(), nil)
	require.NoError(t, err)
	return as
}

// small is a model whose Jacobians can be written out.
func small(p deeploop.Placement, change ...func(*TrainConfig)) TrainConfig {
	c := tiny()
	place(p)(&c)
	c.Arch.Layers, c.Arch.Loops, c.Arch.MLPWidth = 1, 3, 5
	c.Arch.Context, c.BatchSize = 4, 1
	for _, f := range change {
		f(&c)
	}
	return c
}

// jacobians writes out dF/dW of every visit of a sublayer of a looped model,
// [R][P][B*T*D], by differences of the whole forward pass in which round r
// alone has other weights. It shares nothing with chain.
func jacobians(t *testing.T, m *Model, c TrainConfig, j int) [][][]float64 {
	t.Helper()
	f, err := NewForward(m, ref.New(1), c.BatchSize, c.Arch.Context)
	require.NoError(t, err)
	defer f.Close()
	require.NoError(t, randomBatches(c, 7)(f.Tokens, f.Loss.Labels))
	params := matrices(m.Blocks.Blocks[j/2], j)
	final := func(round int, at kernel.Buf, i int, h float64) []float64 {
		require.NoError(t, f.Embed())
		for r := range c.Arch.Loops {
			w := at.At(i)
			if r == round {
				at.SetAt(i, w+h)
			}
			for _, p := range params {
				p.Changed()
			}
			require.NoError(t, f.Round())
			at.SetAt(i, w)
		}
		d, gain := c.Arch.HiddenSize, m.FinalGain
		var out []float64
		for row := 0; row < f.X.Len(); row += d {
			rms := 1.
			if c.Arch.HasFinalNorm() {
				rms = 0
				for k := range d {
					rms += f.X.At(row+k) * f.X.At(row+k) / float64(d)
				}
				rms = math.Sqrt(rms + c.Arch.RMSNormEps)
			}
			for k := range d {
				g := 1.
				if gain != nil {
					g = gain.Data.At(k)
				}
				out = append(out, g*f.X.At(row+k)/rms)
			}
		}
		return out
	}
	const h = 1e-5
	all := make([][][]float64, c.Arch.Loops)
	for r := range all {
		for _, p := range params {
			for i := range p.Data.Len() {
				plus, minus := final(r, p.Data, i, h), final(r, p.Data, i, -h)
				for k := range plus {
					plus[k] = (plus[k] - minus[k]) / (2 * h)
				}
				all[r] = append(all[r], plus)
			}
		}
	}
	return all
}

// largest is the largest singular value of a matrix [P][n].
func largest(a [][]float64) float64 {
	v := make([]float64, len(a[0]))
	for i := range v {
		v[i] = math.Sin(float64(i + 1))
	}
	s := 0.
	for range 500 {
		w := make([]float64, len(v))
		for _, row := range a {
			d := 0.
			for i, x := range row {
				d += x * v[i]
			}
			for i, x := range row {
				w[i] += d * x
			}
		}
		s = 0
		for _, x := range w {
			s += x * x
		}
		s = math.Sqrt(s)
		for i := range v {
			v[i] = w[i] / s
		}
	}
	return math.Sqrt(s)
}

func sumOf(all [][][]float64) [][]float64 {
	sum := make([][]float64, len(all[0]))
	for i := range sum {
		sum[i] = slices.Clone(all[0][i])
		for _, a := range all[1:] {
			for k, x := range a[i] {
				sum[i][k] += x
			}
		}
	}
	return sum
}

// kappa, its sensitivities and its gradients against Jacobians written out, with
// many iterations exactly and with five of them from below and nearly.
func TestFullKappaMatchesItsDefinition(t *testing.T) {
	for name, c := range map[string]TrainConfig{
		"deeploop":         small(deeploop.DeepLoop),
		"deeploop qk_norm": small(deeploop.DeepLoop, func(c *TrainConfig) { c.Arch.QKNorm, c.Arch.MLP = true, MLPGELU }),
		"deepnorm":         small(deeploop.DeepNorm, func(c *TrainConfig) { c.Arch.NormGain = false }),
		"prenorm":          small(deeploop.PreNorm),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m, err := NewModel(c.Arch, kernel.Float64, 3)
			require.NoError(t, err)
			shake(m, 1)
			exact, five := measureFull(t, m, c, 0, 120), measureFull(t, m, c, 0, DefaultIterations)
			cheap, err := newTestKappa(t, m, c).Measure(t.Context(), nil)
			require.NoError(t, err)
			for j, a := range exact {
				require.Equal(t, cheap[j].Sublayer, a.Sublayer)
				require.InEpsilon(t, cheap[j].KappaG, a.KappaG, 1e-9)
				require.InEpsilonSlice(t, cheap[j].Norms, a.Norms, 1e-9)
				all := jacobians(t, m, c, j)
				most := 0.
				for r, u := range all {
					want := largest(u)
					most = max(most, want)
					require.InEpsilon(t, want, a.Full.Sensitivities[r], 1e-6, "%s visit %d", a.Sublayer, r)
					require.InEpsilon(t, want, five[j].Full.Sensitivities[r], .15)
					require.LessOrEqual(t, five[j].Full.Sensitivities[r], want*(1+1e-6))
				}
				sum := largest(sumOf(all))
				require.InEpsilon(t, sum, a.Full.SumSensitivity, 1e-6)
				sumG := math.Sqrt(a.KappaG * squares(a.Norms))
				require.InEpsilon(t, sumG, a.Full.SumNorm, 1e-9)
				require.InEpsilon(t, sum*sumG/(3*most*slices.Max(a.Norms)), a.Full.Kappa, 1e-6)
				require.InEpsilon(t, a.Full.Kappa, five[j].Full.Kappa, .15)
			}
		})
	}
}

func squares(v []float64) (s float64) {
	for _, x := range v {
		s += x * x
	}
	return s
}

// Along the gradient alone: with no iterations the sensitivity is |U·G|/|G|.
func TestFullKappaAlongTheGradient(t *testing.T) {
	c := small(deeploop.DeepLoop)
	m, err := NewModel(c.Arch, kernel.Float64, 3)
	require.NoError(t, err)
	k := newTestKappa(t, m, c)
	_, err = k.Measure(t.Context(), nil)
	require.NoError(t, err)
	as := measureFull(t, m, c, 0, 0)
	for j, a := range as {
		for r, u := range jacobians(t, m, c, j) {
			moved := make([]float64, len(u[0]))
			i := 0
			for _, p := range matrices(k.model.Blocks.Blocks[0], j) {
				for e := range p.Data.Len() {
					for n, x := range u[i] {
						moved[n] += x * p.Grads[r].Buf.At(e) / a.Norms[r]
					}
					i++
				}
			}
			require.InEpsilon(t, math.Sqrt(squares(moved)), a.Full.Sensitivities[r], 1e-6)
		}
	}
}

func TestFullKappaIsOneWithOneRound(t *testing.T) {
	for _, p := range []deeploop.Placement{deeploop.DeepLoop, deeploop.PreNorm} {
		c := tiny()
		place(p)(&c)
		c.Arch.Loops = 1
		m, err := NewModel(c.Arch, kernel.Float32, 3)
		require.NoError(t, err)
		as := measureFull(t, m, c, 0, 2)
		require.Len(t, as, 2*c.Arch.Layers)
		for _, a := range as {
			require.InDelta(t, 1, a.Full.Kappa, 1e-12, a.Sublayer)
		}
		require.InDelta(t, 1, as.FullMax(), 1e-12)
		require.InDelta(t, 1, as.FullMedian(), 1e-12)
	}
}

// A looped model and an untied one with the same weights in groups of blocks
// have the same figures; single and double precision agree.
func TestFullKappaOfUntiedGroupsAndPrecisions(t *testing.T) {
	c := tiny()
	c.Arch.Loops = 3
	tied, err := NewModel(c.Arch, kernel.Float64, 3)
	require.NoError(t, err)
	shake(tied, 4)
	want := measureFull(t, tied, c, 0, 3)
	u := c
	u.Arch.Layers, u.Arch.Loops = 6, 1
	u.Arch.Alpha = tied.Blocks.Residual.Alpha
	for _, act := range []kernel.DType{kernel.Float64, kernel.Float32} {
		untied, err := NewModel(u.Arch, act, 8)
		require.NoError(t, err)
		copyAll := func(to, from kernel.Buf) {
			for i := range to.Len() {
				to.SetAt(i, from.At(i))
			}
		}
		copyAll(untied.Embed.Data, tied.Embed.Data)
		copyAll(untied.EmbedGain.Data, tied.EmbedGain.Data)
		for i, bl := range untied.Blocks.Blocks {
			for j, p := range bl.Params() {
				copyAll(p.Data, tied.Blocks.Blocks[i%2].Params()[j].Data)
			}
		}
		got := measureFull(t, untied, u, 2, 3)
		near := map[kernel.DType]float64{kernel.Float64: 1e-9, kernel.Float32: 2e-3}[act]
		require.Len(t, got, 4)
		for i := range want {
			require.Equal(t, want[i].Sublayer, got[i].Sublayer)
			require.InEpsilon(t, want[i].Full.Kappa, got[i].Full.Kappa, near)
			require.InEpsilonSlice(t, want[i].Full.Sensitivities, got[i].Full.Sensitivities, near)
			require.InEpsilon(t, want[i].Full.SumSensitivity, got[i].Full.SumSensitivity, near)
		}
		alone := measureFull(t, untied, u, 0, 1)
		require.Len(t, alone, 12)
		require.InDelta(t, 1, alone.FullMax(), 1e-12)
	}
	_, err = NewFullKappa(tied, ref.New(1), 2, 6, 2, 1)
	require.ErrorContains(t, err, "whose visits are its rounds")
}

// A deep stack with the tiny beta/alpha of a long loop: single precision still
// has three digits, since nothing is differentiated through the large stream.
func TestFullKappaOfALongLoopInSinglePrecision(t *testing.T) {
	c := small(deeploop.DeepLoop, func(c *TrainConfig) { c.Arch.Loops = 40 })
	var all []Agreements
	for _, act := range []kernel.DType{kernel.Float64, kernel.Float32} {
		m, err := NewModel(c.Arch, act, 3)
		require.NoError(t, err)
		all = append(all, measureFull(t, m, c, 0, 1))
	}
	for i, a := range all[0] {
		require.InEpsilon(t, a.Full.Kappa, all[1][i].Full.Kappa, 5e-3)
		require.InEpsilonSlice(t, a.Full.Sensitivities, all[1][i].Full.Sensitivities, 5e-3)
	}
}

func TestFullKappaStops(t *testing.T) {
	c := small(deeploop.DeepLoop)
	m, err := NewModel(c.Arch, kernel.Float32, 3)
	require.NoError(t, err)
	k, err := NewFullKappa(m, ref.New(1), 1, 4, 0, 1)
	require.NoError(t, err)
	defer k.Close()
	ctx, cancel := context.WithCancel(t.Context())
	_, err = k.Measure(ctx, func(done, total int) {
		require.Equal(t, 8, total, "three visits and their sum, of two sublayers")
		cancel()
	})
	require.ErrorIs(t, err, context.Canceled)
	_, err = NewFullKappa(m16(t, c), ref.New(1), 1, 4, 0, 1)
	require.ErrorContains(t, err, "expected fp32")
}

func m16(t *testing.T, c TrainConfig) *Model {
	m, err := NewModel(c.Arch, kernel.BFloat16, 3)
	require.NoError(t, err)
	return m
}
