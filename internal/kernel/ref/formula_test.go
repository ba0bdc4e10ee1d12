package ref_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"deeploop/internal/kernel"
	"deeploop/internal/kernel/ref"
)

// The forward formulas of kernel.Backend, written down a second time with one
// loop per index and nothing else. Gradients are checked against the forward
// by TestGradient.

func random(r *rand.Rand, n int) []float64 {
	x := make([]float64, n)
	for i := range x {
		x[i] = r.NormFloat64()
	}
	return x
}

func TestLinearFormula(t *testing.T) {
	const m, n, k = 5, 6, 7
	r := rand.New(rand.NewPCG(1, 1))
	x, w, y := random(r, m*k), random(r, n*k), make([]float64, m*n)
	ref.New(2).Linear(kernel.F64(y), kernel.F64(x), &kernel.Weight{Data: kernel.F64(w), Rows: n, Cols: k})
	for i := range m {
		for j := range n {
			sum := 0.0
			for p := range k {
				sum += x[i*k+p] * w[j*k+p]
			}
			require.InDelta(t, sum, y[i*n+j], 1e-13)
		}
	}
}

func TestAttentionFormula(t *testing.T) {
	for _, causal := range []bool{false, true} {
		const b, tt, n, k = 2, 5, 3, 4
		r := rand.New(rand.NewPCG(2, 1))
		cos, sin := kernel.RopeTables(kernel.Float64, tt, k, 100)
		qkv, o, lse := random(r, b*tt*3*n*k), make([]float64, b*tt*n*k), make([]float64, b*n*tt)
		ref.New(2).Attention(kernel.F64(o), kernel.F64(lse), kernel.F64(qkv), kernel.AttentionShape{B: b, T: tt, N: n, K: k, Causal: causal, Cos: cos, Sin: sin})
		// part 0 is q, 1 is k, 2 is v; q and k are rotated
		at := func(bi, t, part, h, i int) float64 {
			e := func(i int) float64 { return qkv[(((bi*tt+t)*3+part)*n+h)*k+i] }
			if part == 2 {
				return e(i)
			}
			c, s := cos.At(t*k/2+i%(k/2)), sin.At(t*k/2+i%(k/2))
			if i < k/2 {
				return e(i)*c - e(i+k/2)*s
			}
			return e(i)*c + e(i-k/2)*s
		}
		for bi := range b {
			for h := range n {
				for q := range tt {
					var sum float64
					var want [k]float64
					for j := range tt {
						if causal && j > q {
							continue
						}
						var score float64
						for i := range k {
							score += at(bi, q, 0, h, i) * at(bi, j, 1, h, i)
						}
						e := math.Exp(score / 2)
						sum += e
						for i := range k {
							want[i] += e * at(bi, j, 2, h, i)
						}
					}
					require.InDelta(t, math.Log(sum), lse[(bi*n+h)*tt+q], 1e-12)
					for i := range k {
						require.InDelta(t, want[i]/sum, o[((bi*tt+q)*n+h)*k+i], 1e-12)
					}
				}
			}
		}
	}
}

func TestResidualNormFormula(t *testing.T) {
	const rows, d, alpha, eps = 3, 5, 1.5, .01
	r := rand.New(rand.NewPCG(3, 1))
	x, z, gain := random(r, rows*d), random(r, rows*d), random(r, d)
	y, rstd := make([]float64, rows*d), make([]float64, rows)
	ref.New(2).ResidualNorm(kernel.F64(y), kernel.F64(rstd), kernel.F64(x), kernel.F64(z), kernel.F64(gain), alpha, eps, d)
	for i := range rows {
		var sum float64
		for j := range d {
			s := alpha*x[i*d+j] + z[i*d+j]
			sum += s * s
		}
		want := math.Pow(sum/d+eps, -.5)
		require.InDelta(t, want, rstd[i], 1e-13)
		for j := range d {
			require.InDelta(t, gain[j]*want*(alpha*x[i*d+j]+z[i*d+j]), y[i*d+j], 1e-13)
		}
	}
}

func TestSwiGLUFormula(t *testing.T) {
	y := make([]float64, 4)
	ref.New(1).SwiGLU(kernel.F64(y), kernel.F64([]float64{0, 1, 5, 6, -2, 3, 7, 8}), 2)
	sigmoid := func(x float64) float64 { return 1 / (1 + math.Exp(-x)) }
	require.InDeltaSlice(t, []float64{0, sigmoid(1) * 6, -2 * sigmoid(-2) * 7, 3 * sigmoid(3) * 8}, y, 1e-13)
}

func TestEmbedFormula(t *testing.T) {
	table := []float64{1, 2, 3, 4, 5, 6} // three tokens of two
	y := make([]float64, 2*4*2)
	ref.New(1).Embed(kernel.F64(y), kernel.EmbedArgs{
		Table: kernel.F64(table), Puzzle: kernel.F64([]float64{10, 20, 30, 40, 50, 60}), Pos: kernel.F64([]float64{.1, .2, .3, .4, .5, .6, .7, .8}),
		IDs: []int32{2, 0, 1, 1}, Batch: 2, T: 2, Prefix: 2, D: 2, Vocab: 3, PuzzleDim: 3, Scale: 2,
	})
	require.InDeltaSlice(t, []float64{
		20.2, 40.4, 60.6, .8, 11, 13.2, 3.4, 5.6,
		80.2, 100.4, 120.6, .8, 7, 9.2, 7.4, 9.6}, y, 1e-12)
}

// Sums and rounding of bfloat16: once, at the end, to the nearest even.
func TestBFloat16RoundsOnce(t *testing.T) {
	h := func(x ...float32) kernel.Buf {
		b := kernel.Alloc(kernel.BFloat16, len(x))
		for i, f := range x {
			b.SetAt(i, float64(f))
		}
		return b
	}
	dst := kernel.Alloc(kernel.BFloat16, 2)
	// 256 + 1 is a tie that goes down to even; with two roundings 256 + 1 + 1 would stay at 256
	ref.New(1).Add(dst, h(256, 256), h(1, 1), h(0, 1))
	require.Equal(t, 256.0, dst.At(0))
	require.Equal(t, 258.0, dst.At(1))
}

func TestCallersBugsPanic(t *testing.T) {
	b, buf := ref.New(1), func(n int) kernel.Buf { return kernel.Alloc(kernel.Float32, n) }
	require.PanicsWithValue(t, "kernel: Linear shapes do not fit", func() {
		b.Linear(buf(4), buf(4), &kernel.Weight{Data: buf(5), Rows: 2, Cols: 2})
	})
	require.PanicsWithValue(t, "kernel: element types do not fit together", func() {
		b.Add(buf(4), buf(4), kernel.Alloc(kernel.BFloat16, 4), kernel.Buf{})
	})
	require.PanicsWithValue(t, "kernel: a label is outside the vocabulary", func() {
		b.CrossEntropy(make([]float64, 1), make([]int32, 1), buf(3), []int32{3}, 3, kernel.Softmax)
	})
	require.PanicsWithValue(t, "kernel: rotary positions need an even head size", func() {
		b.Attention(buf(3), buf(1), buf(9), kernel.AttentionShape{B: 1, T: 1, N: 1, K: 3, Cos: buf(1), Sin: buf(1)})
	})
}
