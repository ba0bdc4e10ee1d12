package optim

import (
	"encoding/json"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"deeploop/internal/kernel"
	"deeploop/internal/kernel/ref"
)

// Steps recorded from PyTorch's AdamW after clip_grad_norm_, with and without
// decay, some clipped and some not, one with gradients of zero.
func TestAdamWEqualsPyTorch(t *testing.T) {
	raw, err := os.ReadFile("testdata/adamw.json")
	require.NoError(t, err)
	var want struct {
		Betas       [2]float64 `json:"betas"`
		Eps         float64    `json:"eps"`
		WeightDecay float64    `json:"weight_decay"`
		MaxNorm     float64    `json:"max_norm"`
		LR          []float64  `json:"lr"`
		Norms       []float64  `json:"grad_norms"`
		Params      []struct {
			NoDecay bool        `json:"no_decay"`
			Init    []float32   `json:"init"`
			Grad    [][]float32 `json:"grad"`
			After   [][]float32 `json:"after"`
			M       []float32   `json:"exp_avg"`
			V       []float32   `json:"exp_avg_sq"`
		} `json:"params"`
	}
	require.NoError(t, json.Unmarshal(raw, &want))
	require.Len(t, want.Params, 3)
	b := ref.New(1)
	defer b.Close()
	var params []Param
	for _, p := range want.Params {
		x := NewParam("p", kernel.F32(p.Init), kernel.Alloc(kernel.Float32, len(p.Init)), nil)
		x.NoDecay = p.NoDecay
		params = append(params, x)
	}
	opt := AdamW{Beta1: want.Betas[0], Beta2: want.Betas[1], Eps: want.Eps, WeightDecay: want.WeightDecay}
	clipped := 0
	for n, lr := range want.LR {
		for i, p := range want.Params {
			copy(params[i].G.Float32s(), p.Grad[n])
		}
		norm, err := GradNorm(b, params)
		require.NoError(t, err)
		require.InDelta(t, want.Norms[n], norm, 1e-6*want.Norms[n])
		scale := Clip(norm, want.MaxNorm)
		if scale < 1 {
			clipped++
		}
		opt.Step(b, params, lr, scale)
		for i, p := range want.Params {
			require.InDeltaSlice(t, p.After[n], params[i].W.Float32s(), 1e-6, "param %d, step %d", i, n+1)
		}
	}
	require.Greater(t, clipped, 0)
	require.Less(t, clipped, len(want.LR))
	for i, p := range want.Params {
		require.InDeltaSlice(t, p.M, params[i].M.Float32s(), 1e-7)
		require.InDeltaSlice(t, p.V, params[i].V.Float32s(), 1e-7)
	}
}

func TestClip(t *testing.T) {
	require.Equal(t, 1.0, Clip(5, 0))
	require.Equal(t, 1.0, Clip(5, -1))
	require.Equal(t, 1.0, Clip(.5, 1))
	require.InDelta(t, .25, Clip(4, 1), 1e-6)
	require.Equal(t, 1.0, Clip(0, 1))
}

// The average that an optimizer takes along equals EMA.Update after the step.
func TestFusedAverageIsUpdate(t *testing.T) {
	b := ref.New(1)
	defer b.Close()
	for name, step := range map[string]func(params []Param, avg *EMA){
		"AdamW": func(p []Param, avg *EMA) {
			(&AdamW{Beta1: .9, Beta2: .95, Eps: 1e-8, WeightDecay: .1, Average: avg}).Step(b, p, .1, 1)
		},
		"AdamATan2": func(p []Param, avg *EMA) {
			(&AdamATan2{Beta1: .9, Beta2: .95, WeightDecay: .1, Average: avg}).Step(b, p, .1)
		},
	} {
		fresh := func() ([]Param, *EMA) {
			p := []Param{NewParam("a", kernel.F32([]float32{1, -2, .3}), kernel.F32([]float32{.1, .2, -.3}), nil),
				NewParam("b", kernel.F32([]float32{5}), kernel.F32([]float32{1}), nil)}
			return p, NewEMA(b, p, .9)
		}
		fused, avg := fresh()
		step(fused, avg)
		apart, want := fresh()
		step(apart, nil)
		want.Update(b, apart)
		for i := range fused {
			require.Equal(t, apart[i].W.Float32s(), fused[i].W.Float32s(), name)
			require.Equal(t, want.Avg[i].Float32s(), avg.Avg[i].Float32s(), name)
		}
	}
}
