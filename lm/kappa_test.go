package lm

import (
	"encoding/json"
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"deeploop/deeploop"
	"deeploop/internal/checkpoint"
	"deeploop/internal/kernel"
	"deeploop/internal/kernel/pick/picktest"
	"deeploop/internal/kernel/ref"
)

func newTestKappa(t *testing.T, m *Model, c TrainConfig) *Kappa {
	t.Helper()
	k, err := NewKappa(m, ref.New(1), c.BatchSize, c.Arch.Context, c.KappaGroup)
	require.NoError(t, err)
	t.Cleanup(k.Close)
	require.NoError(t, randomBatches(c, 7)(k.batch.tokens, k.batch.loss.Labels))
	return k
}

func TestKappaIsOneWithOneRound(t *testing.T) {
	for _, p := range []deeploop.Placement{deeploop.DeepLoop, deeploop.PreNorm} {
		c := tiny()
		place(p)(&c)
		c.Arch.Loops = 1
		m, err := NewModel(c.Arch, kernel.Float32, 3)
		require.NoError(t, err)
		as, err := newTestKappa(t, m, c).Measure(t.Context(), nil)
		require.NoError(t, err)
		require.Len(t, as, 2*c.Arch.Layers)
		for _, a := range as {
			require.InDelta(t, 1, a.KappaG, 1e-12, a.Sublayer)
			require.True(t, math.IsNaN(a.Cosine))
			require.Len(t, a.Norms, 1)
		}
		require.InDelta(t, 1, as.Max(), 1e-12)
		require.InDelta(t, 1, as.Median(), 1e-12)
		require.True(t, math.IsNaN(as.MeanCosine()))
	}
}

// The rounds' gradients add up to the ordinary one.
func TestRoundsAddUpToTheGradient(t *testing.T) {
	c := tiny()
	c.Arch.Loops = 3
	l := newTestLearner(t, c, kernel.Float64, ref.New(1))
	shake(l.Model, 1)
	_, err := l.gradients(randomBatches(c, 7))
	require.NoError(t, err)
	k := newTestKappa(t, l.Model, c)
	for range 2 { // measuring again starts from zero
		as, err := k.Measure(t.Context(), nil)
		require.NoError(t, err)
		for i, p := range k.model.Params() {
			sum := make([]float64, p.Data.Len())
			for _, g := range p.Grads {
				for j := range sum {
					sum[j] += g.Buf.At(j)
				}
			}
			for j, s := range sum {
				require.InDelta(t, l.Params[i].G.At(j), s, 1e-14, "%s", p.Name)
			}
			if p.Rows > 1 && p != k.model.Embed {
				require.Len(t, p.Grads, 3)
				require.NotEqual(t, p.Grads[0].Buf.At(0), p.Grads[1].Buf.At(0))
			}
		}
		for _, a := range as {
			require.Greater(t, a.KappaG, 0.)
			require.LessOrEqual(t, a.KappaG, 3.)
			require.LessOrEqual(t, math.Abs(a.Cosine), 1., "a cosine")
		}
	}
}

// agree on gradients whose answers are known.
func TestAgreementOfKnownGradients(t *testing.T) {
	one := func(v ...float64) []kernel.Buf { return []kernel.Buf{kernel.F64(v[:1]), kernel.F64(v[1:])} }
	for _, c := range []struct {
		visits        [][]kernel.Buf
		kappa, cosine float64
	}{
		{[][]kernel.Buf{one(1, 0, 0), one(0, 2, 0), one(0, 0, 3)}, 1, 0},
		{[][]kernel.Buf{one(1, 2, 3), one(1, 2, 3), one(1, 2, 3), one(1, 2, 3)}, 4, 1},
		{[][]kernel.Buf{one(1, 2, 3), one(-1, -2, -3)}, 0, -1},
		{[][]kernel.Buf{one(3, 4, 0), one(3, 0, 0)}, 52. / 34, .6},
	} {
		a := agree("x", c.visits)
		require.InDelta(t, c.kappa, a.KappaG, 1e-12)
		require.InDelta(t, c.cosine, a.Cosine, 1e-12)
	}
	as := Agreements{{KappaG: 3, Cosine: .5}, {KappaG: 1, Cosine: .1}, {KappaG: 2, Cosine: 0}, {KappaG: 7, Cosine: .2}}
	require.Equal(t, 7., as.Max())
	require.Equal(t, 2.5, as.Median())
	require.InDelta(t, .2, as.MeanCosine(), 1e-12)
	none := agree("x", [][]kernel.Buf{one(0, 0, 0), one(0, 0, 0)})
	require.True(t, math.IsNaN(none.KappaG) && math.IsNaN(none.Cosine), "nothing to compare")
	require.True(t, math.IsNaN(append(as, none).Max()))
	require.True(t, math.IsNaN(append(as, none).MeanCosine()))
}

// The view has the model's weights, not copies, and gradients of its own.
func TestKappaViewSharesWeights(t *testing.T) {
	c := tiny()
	l := newTestLearner(t, c, kernel.Float32, ref.New(1))
	k := newTestKappa(t, l.Model, c)
	first, err := k.Measure(t.Context(), nil)
	require.NoError(t, err)
	for i, p := range l.Model.Params() {
		require.Equal(t, p.Data, k.model.Params()[i].Data)
		require.NotEqual(t, p.Grad().Ptr(), k.model.Params()[i].Grad().Ptr())
	}
	_, err = l.Step(randomBatches(c, 1))
	require.NoError(t, err)
	then, err := k.Measure(t.Context(), nil)
	require.NoError(t, err)
	require.NotEqual(t, first, then, "it sees what training wrote")
	fresh, err := newTestKappa(t, l.Model, c).Measure(t.Context(), nil)
	require.NoError(t, err)
	require.Equal(t, fresh, then)
}

// Training is the same, bit for bit, with kappa_steps on and off.
func TestKappaDoesNotDisturbTraining(t *testing.T) {
	for _, act := range []kernel.DType{kernel.Float32, kernel.BFloat16} {
		for _, be := range picktest.Backends(t, 2) {
			var want [][]byte
			for _, every := range []int{0, 2} {
				c := tiny()
				c.KappaSteps, c.Steps = every, 5
				d := Data{Train: tokensOf(300, c.Arch.VocabSize), Val: tokensOf(60, c.Arch.VocabSize)}
				j, err := NewJob(c, d, be, act)
				require.NoError(t, err)
				var metrics [][]string
				for i := range 5 {
					r, err := j.Step(t.Context(), i+1)
					require.NoError(t, err)
					var keys []string
					for k := range r.Metrics {
						keys = append(keys, k)
					}
					slices.Sort(keys)
					metrics = append(metrics, keys)
				}
				with := []string{"grad_norm", "kappa_G_max", "kappa_G_median", "kappa_cosine_mean", "loss", "lr"}
				without := []string{"grad_norm", "loss", "lr"}
				end, err := j.Evaluate(t.Context(), nil)
				require.NoError(t, err)
				if every == 2 {
					require.Equal(t, [][]string{with, without, with, without, with}, metrics, "before steps 1, 3 and 5")
					require.Contains(t, end, "kappa_G_max", "and at the end")
				} else {
					require.NotContains(t, end, "kappa_G_max")
				}
				var got [][]byte
				for _, p := range j.Params {
					got = append(got, slices.Clone(p.W.Bytes()), slices.Clone(p.M.Bytes()), slices.Clone(p.V.Bytes()))
				}
				if want == nil {
					want = got
				}
				require.Equal(t, want, got)
				j.Close()
			}
		}
	}
}

func TestKappaNeedsTokens(t *testing.T) {
	c := tiny()
	m, err := NewModel(c.Arch, kernel.Float32, 3)
	require.NoError(t, err)
	k := newTestKappa(t, m, c)
	n := c.BatchSize * c.Arch.Context
	require.NoError(t, k.Load(count(n+1), 0))
	require.ErrorContains(t, k.Load(count(n), 0), "13 tokens from position 0 on are needed, the split has 12")
	require.ErrorContains(t, k.Load(count(n+1), 1), "from position 1 on")
}

// What a job saves is what the next steps depend on: a job restored from it
// goes on as the first would have.
func TestJobResumes(t *testing.T) {
	c := tiny()
	c.EMA, c.EMARate = true, .9
	d := Data{Train: tokensOf(300, c.Arch.VocabSize), Val: tokensOf(60, c.Arch.VocabSize)}
	open := func() *Job {
		j, err := NewJob(c, d, ref.New(1), kernel.Float32)
		require.NoError(t, err)
		t.Cleanup(j.Close)
		return j
	}
	store := checkpoint.Store{Dir: t.TempDir()}
	steps := func(j *Job, from, to int) (losses []float64) {
		for i := from; i < to; i++ {
			r, err := j.Step(t.Context(), i+1)
			require.NoError(t, err)
			losses = append(losses, r.Loss)
		}
		return losses
	}
	a := open()
	steps(a, 0, 3)
	var s checkpoint.Set
	a.State(&s)
	raw, err := json.Marshal(c)
	require.NoError(t, err)
	_, err = store.Save(3, checkpoint.Meta{Kind: Kind, Config: raw}, &s)
	require.NoError(t, err)
	want := steps(a, 3, 8)

	ck, err := checkpoint.OpenFound(store.Dir, checkpoint.LastSaved)
	require.NoError(t, err)
	defer ck.Close()
	b := open()
	steps(b, 0, 1)
	var into checkpoint.Set
	b.State(&into)
	require.NoError(t, ck.Load(&into))
	require.NoError(t, b.Restored())
	require.Equal(t, want, steps(b, 3, 8))
	require.NoError(t, b.Check())

	// The same checkpoint as a model.
	got, err := CheckpointConfig(ck)
	require.NoError(t, err)
	require.Equal(t, c, got)
	m, weights, err := LoadModel(ck, got.Arch, kernel.Float32, "")
	require.NoError(t, err)
	require.Equal(t, WeightsEMA, weights)
	raw1, weights, err := LoadModel(ck, got.Arch.AtLoops(5), kernel.BFloat16, WeightsRaw)
	require.NoError(t, err)
	require.Equal(t, WeightsRaw, weights)
	require.NotEqual(t, m.Embed.Data.At(3), raw1.Embed.Data.At(3))
	require.Equal(t, a.Model.Blocks.Residual, raw1.Blocks.Residual)
	_, _, err = LoadModel(ck, got.Arch, kernel.Float32, "best")
	require.ErrorContains(t, err, "expected ema or raw")
	wide := got.Arch
	wide.MLPWidth = 13
	_, _, err = LoadModel(ck, wide, kernel.Float32, "")
	require.ErrorContains(t, err, "ema/blocks.0.mlp.gate_up.weight is F32 [24 8] in the checkpoint, F32 [26 8] wanted")
}

// Moments and averages that are not finite never reach a checkpoint.
func TestCheckFindsBrokenState(t *testing.T) {
	for want, spoil := range map[string]func(j *Job){
		"weight of embed.weight is NaN at element 2":     func(j *Job) { j.Params[0].W.SetAt(2, math.NaN()) },
		"moment of embed_norm.gain is +Inf at element 3": func(j *Job) { j.Params[1].V.SetAt(3, math.Inf(1)) },
		"average of embed.weight is -Inf at element 1":   func(j *Job) { j.EMA.Avg[0].SetAt(1, math.Inf(-1)) },
	} {
		c := tiny()
		c.EMA, c.EMARate = true, .9
		j, err := NewJob(c, Data{Train: tokensOf(90, 11), Val: tokensOf(60, 11)}, ref.New(1), kernel.Float32)
		require.NoError(t, err)
		require.NoError(t, j.Check())
		spoil(j)
		require.ErrorContains(t, j.Check(), want)
		j.Close()
	}
}

// An untied model with equal blocks in groups: visits of blocks k, K+k, ... are
// compared, and a looped model of the same weights has the same figures.
func TestKappaOfUntiedGroups(t *testing.T) {
	c := tiny()
	c.Arch.Loops = 3
	tied, err := NewModel(c.Arch, kernel.Float64, 3)
	require.NoError(t, err)
	shake(tied, 4)
	want, err := newTestKappa(t, tied, c).Measure(t.Context(), nil)
	require.NoError(t, err)

	u := c
	u.Arch.Layers, u.Arch.Loops = 6, 1
	untied, err := NewModel(u.Arch, kernel.Float64, 8)
	require.NoError(t, err)
	copy(untied.Embed.Data.Bytes(), tied.Embed.Data.Bytes())
	copy(untied.EmbedGain.Data.Bytes(), tied.EmbedGain.Data.Bytes())
	for i, bl := range untied.Blocks.Blocks {
		for j, p := range bl.Params() {
			copy(p.Data.Bytes(), tied.Blocks.Blocks[i%2].Params()[j].Data.Bytes())
		}
	}
	k := newTestKappa(t, untied, u)
	alone, err := k.Measure(t.Context(), nil)
	require.NoError(t, err)
	require.Len(t, alone, 12)
	u.KappaGroup = 2
	got, err := newTestKappa(t, untied, u).Measure(t.Context(), nil)
	require.NoError(t, err)
	require.Len(t, got, 4)
	for i := range want {
		require.Equal(t, want[i].Sublayer, got[i].Sublayer)
		require.InEpsilon(t, want[i].KappaG, got[i].KappaG, 1e-9)
		require.InDelta(t, want[i].Cosine, got[i].Cosine, 1e-9)
		require.InEpsilonSlice(t, want[i].Norms, got[i].Norms, 1e-9)
	}
	u.KappaGroup = 4
	require.ErrorContains(t, u.Validate(), "kappa_group is 4, expected a divisor of the model's 6 layers")
	_, err = NewKappa(tied, ref.New(1), 1, 2, 1)
	require.ErrorContains(t, err, "whose visits are its rounds")
}

func TestMeanOfMeasurements(t *testing.T) {
	a := Agreements{{Sublayer: "x", KappaG: 1, Cosine: .5, Norms: []float64{1, 2}}}
	b := Agreements{{Sublayer: "x", KappaG: 2, Cosine: -.5, Norms: []float64{3, 6}}}
	require.Equal(t, Agreements{{Sublayer: "x", KappaG: 1.5, Cosine: 0, Norms: []float64{2, 4}}}, MeanOf([]Agreements{a, b}))
}
