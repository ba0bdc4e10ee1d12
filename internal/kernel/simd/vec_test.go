//go:build cgo

package simd_test

import (
	"math/rand/v2"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"deeploop/internal/kernel"
	"deeploop/internal/kernel/simd"
	"deeploop/internal/kerneltest"
)

// each runs f for every level this machine has.
func each(t *testing.T, f func(t *testing.T, open kerneltest.Open)) {
	for _, l := range simd.Levels {
		t.Run(l.String(), func(t *testing.T) {
			if why := simd.Missing(l); why != "" {
				t.Logf("not tested: %s", why)
				return
			}
			f(t, func(threads int) kernel.Backend {
				b, err := simd.Open(l, threads)
				require.NoError(t, err)
				return b
			})
		})
	}
}

func TestMatchesRef(t *testing.T) {
	each(t, func(t *testing.T, open kerneltest.Open) { kerneltest.Agree(t, open, kernel.Float32, kernel.BFloat16) })
}

// FuzzMatchesRef draws a shape for each operation from the seed. The seeds
// below run with every test.
func FuzzMatchesRef(f *testing.F) {
	for seed := range uint64(8) {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, seed uint64) {
		cases := kerneltest.Random(rand.New(rand.NewPCG(seed, 7)))
		each(t, func(t *testing.T, open kerneltest.Open) {
			kerneltest.AgreeOn(t, open, cases, kernel.Float32, kernel.BFloat16)
		})
	})
}

func TestGolden(t *testing.T) {
	each(t, func(t *testing.T, open kerneltest.Open) {
		b := open(2)
		defer b.Close()
		kerneltest.Golden(t, b, kernel.Float32)
	})
}

// After the first call no method leaves anything to the garbage collector.
func TestCallsAllocateNothing(t *testing.T) {
	each(t, func(t *testing.T, open kerneltest.Open) {
		b := open(2)
		defer b.Close()
		const m, d = 24, 32
		x, y, z := kernel.Alloc(kernel.BFloat16, m*d), kernel.Alloc(kernel.BFloat16, m*d), kernel.Alloc(kernel.BFloat16, m*d)
		qkv, dqkv, wide := kernel.Alloc(kernel.BFloat16, 3*m*d), kernel.Alloc(kernel.BFloat16, 3*m*d), kernel.Alloc(kernel.BFloat16, 2*m*d)
		row, g, h := kernel.Alloc(kernel.Float32, m), kernel.Alloc(kernel.Float32, m*d), kernel.Alloc(kernel.Float32, 3*m*d)
		gain, dgain := h.Slice(0, d), h.Slice(d, 2*d)
		w := &kernel.Weight{Data: kernel.Alloc(kernel.Float32, d*d), Rows: d, Cols: d, Version: 1}
		dw := kernel.Alloc(kernel.Float32, d*d)
		loss, pred, labels := make([]float64, m), make([]int32, m), make([]int32, m)
		s := kernel.AttentionShape{B: 2, T: m / 2, N: 1, K: d}
		e := kernel.EmbedArgs{Table: g, IDs: labels, Batch: 2, T: m / 2, D: d, Vocab: m, Scale: 1}
		for name, call := range map[string]func(){
			"Linear":   func() { b.Linear(y, x, w) },
			"LinearDX": func() { b.LinearDX(x, y, w, true) },
			"LinearDW": func() { b.LinearDW(dw, y, x, d, d, true) },
			"Embed":    func() { b.Embed(y, e); b.EmbedBackward(g, kernel.Buf{}, kernel.Buf{}, y, e, true) },
			"Attention": func() {
				b.Attention(y, row, qkv, s)
				b.AttentionBackward(dqkv, x, y, qkv, row, s)
			},
			"ResidualNorm": func() {
				b.ResidualNorm(y, row, x, z, gain, 1, 1e-5, d)
				b.ResidualNormBackward(dqkv.Slice(0, m*d), dqkv.Slice(m*d, 2*m*d), dgain, y, kernel.Buf{}, row, x, z, gain, 1, d)
			},
			"SwiGLU": func() { b.SwiGLU(y, wide, d); b.SwiGLUBackward(wide, x, wide, d) },
			"AttentionCached": func() {
				b.AttentionCached(y.Slice(0, d), qkv.Slice(0, 3*d), x, z, 3, kernel.AttentionShape{B: 1, T: 1, N: 1, K: d})
			},
			"QKNorm": func() {
				b.QKNorm(dqkv, g.Slice(0, 2*m), qkv, gain, gain, s, 1e-5)
				b.QKNormBackward(dqkv, dgain, dgain, dqkv, qkv, g.Slice(0, 2*m), gain, gain, s)
			},
			"Activate": func() { b.Activate(y, x, kernel.GELUErf); b.ActivateBackward(y, x, z, kernel.GELU) },
			"CrossEntropy": func() {
				b.CrossEntropy(loss, pred, g, labels, d, kernel.Stablemax)
				b.CrossEntropyBackward(y, g, labels, loss, d, kernel.Softmax)
			},
			"moves": func() { b.Add(x, y, z, kernel.Buf{}); b.Convert(g, x); b.Convert(x, g); b.SumSquares(x) },
			"updates": func() {
				b.AdamATan2(g, h.Slice(0, m*d), h.Slice(m*d, 2*m*d), h.Slice(2*m*d, 3*m*d), kernel.AdamHyper{LR: 1e-3, Beta1: .9, Beta2: .95, Step: 1})
				b.AdamW(g, h.Slice(0, m*d), h.Slice(m*d, 2*m*d), h.Slice(2*m*d, 3*m*d), kernel.AdamHyper{LR: 1e-3, Beta1: .9, Beta2: .95, Step: 1, Eps: 1e-8, GradScale: 1})
				b.SignSGD(g, h.Slice(0, m*d), .1, .1)
				b.Lerp(g, h.Slice(0, m*d), .5)
			},
		} {
			require.Zero(t, testing.AllocsPerRun(5, call), name)
		}
	})
}

func TestCachedIsAttention(t *testing.T) {
	each(t, func(t *testing.T, open kerneltest.Open) {
		b := open(2)
		defer b.Close()
		for _, pieces := range [][]int{{1, 1, 1, 1}, {37, 1, 1, 9, 1}, {1, 40, 2}, {5, 4, 70}} {
			require.Less(t, kerneltest.CachedIsAttention(b, kernel.Float32, pieces), 3e-6)
			require.Less(t, kerneltest.CachedIsAttention(b, kernel.BFloat16, pieces), .05)
		}
	})
}

// The moving average that an optimizer's pass updates is what Lerp makes.
func TestFusedAverageIsLerp(t *testing.T) {
	each(t, func(t *testing.T, open kerneltest.Open) {
		b := open(2)
		defer b.Close()
		const n = 20000
		r := rand.New(rand.NewPCG(3, 3))
		var x [6]kernel.Buf
		for i := range x {
			x[i] = kernel.Alloc(kernel.Float32, n)
			for j := range n {
				x[i].SetAt(j, r.Float64())
			}
		}
		h := kernel.AdamHyper{LR: .1, Beta1: .9, Beta2: .95, WeightDecay: .1, Step: 3, Eps: 1e-8, GradScale: .5, AverageRate: .999}
		for _, step := range []func(w, g, m, v kernel.Buf, h kernel.AdamHyper){b.AdamW, b.AdamATan2} {
			b.Convert(x[5], x[4])
			h.Average = x[4]
			step(x[0], x[1], x[2], x[3], h)
			b.Lerp(x[5], x[0], h.AverageRate)
			require.Equal(t, x[5].Float32s(), x[4].Float32s())
		}
	})
}

func TestFloat64Panics(t *testing.T) {
	b, err := simd.Open(simd.Portable, 1)
	require.NoError(t, err)
	defer b.Close()
	x := kernel.Alloc(kernel.Float64, 4)
	require.PanicsWithValue(t, "kernel: simd computes in fp32 and bf16; use ref for fp64", func() { b.Add(x, x, x, kernel.Buf{}) })
}

func BenchmarkKernels(b *testing.B) {
	for _, l := range simd.Levels {
		b.Run(l.String(), func(b *testing.B) {
			be, err := simd.Open(l, runtime.GOMAXPROCS(0))
			if err != nil {
				b.Skip(err)
			}
			defer be.Close()
			kerneltest.Speed(b, be, kernel.Float32, kernel.BFloat16)
		})
	}
}
