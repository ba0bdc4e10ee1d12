package optim

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"deeploop/internal/kernel"
	"deeploop/internal/kernel/ref"
)

// The first update is lr·atan((1-b1)/1)/(1-b1)·sign(g), whatever g's size
// (architectures.md G.5).
func TestAdamATan2FirstStepIgnoresSize(t *testing.T) {
	b := ref.New(1)
	defer b.Close()
	for _, g := range []float32{1e-12, 1, -1e12} {
		p := NewParam("w", kernel.F32([]float32{0, 0}), kernel.F32([]float32{g, 0}), nil)
		(&AdamATan2{Beta1: .9, Beta2: .95}).Step(b, []Param{p}, 1e-2)
		want := -1e-2 * math.Atan(0.1) / 0.1 * float64(g) / math.Abs(float64(g))
		require.InEpsilon(t, want, p.W.At(0), 1e-5)
		require.Zero(t, p.W.At(1))
	}
}

func TestStepTellsTheOwner(t *testing.T) {
	b := ref.New(1)
	defer b.Close()
	writes := 0
	p := []Param{NewParam("w", kernel.F32(make([]float32, 3)), kernel.F32(make([]float32, 3)), func() { writes++ })}
	(&AdamATan2{Beta1: .9, Beta2: .95}).Step(b, p, 1)
	require.Equal(t, 1, writes)
	e := NewEMA(b, p, .9)
	e.Update(b, p)
	require.Equal(t, 1, writes)
	e.Swap(p)
	require.Equal(t, 2, writes)
}

func TestSparseSignSGDTouchesOnlyRowsOfTheBatch(t *testing.T) {
	b := ref.New(1)
	defer b.Close()
	for _, dtype := range []kernel.DType{kernel.Float32, kernel.Float64} {
		table, grad := kernel.Alloc(dtype, 8), kernel.Alloc(dtype, 6)
		for i := range 8 {
			table.SetAt(i, 1)
		}
		for i, v := range []float64{3, -1, 1e-30, 5, -3, 1} { // rows 2, 0, 2: sums 0, 0 for row 2
			grad.SetAt(i, v)
		}
		o := SparseSignSGD{WeightDecay: .5}
		o.Step(b, table, 2, []int32{2, 0, 2}, grad, .1)
		for i, want := range []float64{.85, .85, 1, 1, .95, .95, 1, 1} {
			require.InDelta(t, want, table.At(i), 1e-6, "%v element %d", dtype, i)
		}
	}
}

// Three equal ids whose sum depends on the order: the batch's order counts.
func TestSparseSignSGDAddsInBatchOrder(t *testing.T) {
	b := ref.New(1)
	defer b.Close()
	o := SparseSignSGD{}
	table := kernel.F32([]float32{0})
	o.Step(b, table, 1, []int32{0, 0, 0}, kernel.F32([]float32{1e8, 1, -1e8}), 1)
	require.Zero(t, table.At(0), "(1e8+1)-1e8 is 0 in float32")
	o.Step(b, table, 1, []int32{0, 0, 0}, kernel.F32([]float32{1e8, -1e8, 1}), 1)
	require.Equal(t, -1.0, table.At(0))
	o.Step(b, table, 1, []int32{0}, kernel.F32([]float32{-1}), 1)
	require.Zero(t, table.At(0), "nothing of the last batch is left")
}

func TestSparseSignSGDRefusesCallersMistakes(t *testing.T) {
	b := ref.New(1)
	defer b.Close()
	o := SparseSignSGD{}
	f := func(n int) kernel.Buf { return kernel.Alloc(kernel.Float32, n) }
	require.Panics(t, func() { o.Step(b, f(4), 2, []int32{2}, f(2), 1) })
	require.Panics(t, func() { o.Step(b, f(4), 2, []int32{-1}, f(2), 1) })
	require.Panics(t, func() { o.Step(b, f(4), 2, []int32{0}, f(3), 1) })
	require.Panics(t, func() { o.Step(b, f(5), 2, []int32{0}, f(2), 1) })
}

func TestEMA(t *testing.T) {
	b := ref.New(1)
	defer b.Close()
	w := kernel.F32([]float32{1, 2})
	p := []Param{NewParam("w", w, kernel.Alloc(kernel.Float32, 2), nil)}
	e := NewEMA(b, p, .75)
	require.Equal(t, []float32{1, 2}, e.Avg[0].Float32s(), "it starts at the weights")
	w.SetAt(0, 5)
	e.Update(b, p)
	require.Equal(t, []float32{2, 2}, e.Avg[0].Float32s())
	e.Swap(p)
	require.Equal(t, []float32{2, 2}, w.Float32s())
	require.Equal(t, []float32{5, 2}, e.Avg[0].Float32s())
	e.Swap(p)
	require.Equal(t, []float32{5, 2}, w.Float32s())
}

func TestEMASwapsLongTensors(t *testing.T) {
	b := ref.New(1)
	defer b.Close()
	w := kernel.Alloc(kernel.Float32, 5001)
	for i := range 5001 {
		w.SetAt(i, float64(i))
	}
	p := []Param{NewParam("w", w, kernel.Alloc(kernel.Float32, 5001), nil)}
	e := NewEMA(b, p, .5)
	clear(w.Float32s())
	e.Swap(p)
	for i := range 5001 {
		require.Equal(t, float64(i), w.At(i))
		require.Zero(t, e.Avg[0].At(i))
	}
}

func TestNonFiniteIsNamed(t *testing.T) {
	b := ref.New(1)
	defer b.Close()
	mk := func(name string, g ...float32) Param {
		return NewParam(name, kernel.F32(append([]float32{}, g...)), kernel.F32(g), nil)
	}
	norm, err := GradNorm(b, []Param{mk("a", 3), mk("b", 0, 4)})
	require.NoError(t, err)
	require.Equal(t, 5.0, norm)

	inf, nan := float32(math.Inf(1)), float32(math.NaN())
	_, err = GradNorm(b, []Param{mk("a", 1), mk("b", 0, inf), mk("c", nan)})
	var nf *NonFinite
	require.ErrorAs(t, err, &nf)
	require.Equal(t, NonFinite{What: "gradient", Tensor: "b", Index: 1, Value: math.Inf(1)}, *nf)
	require.EqualError(t, err, "gradient of b is +Inf at element 1")

	err = FiniteWeights(b, []Param{mk("a", 1), mk("c", 1, 2, nan)})
	require.EqualError(t, err, "weight of c is NaN at element 2")
	require.NoError(t, FiniteWeights(b, []Param{mk("big", math.MaxFloat32, -math.MaxFloat32)}))
	require.NoError(t, Finite(b, "weight", "huge", kernel.F64([]float64{1e300, 1e300})), "the sum overflows, the elements are finite")
	require.EqualError(t, &NonFinite{What: "loss", Index: -1, Value: math.NaN()}, "loss is NaN")
}

// Steps past the total are not clamped: the cosine rises again, as in the
// reference code.
func TestCosinePastTheTotal(t *testing.T) {
	c := Cosine{Base: 1, Warmup: 10, Total: 110, MinRatio: .1}
	require.InDelta(t, 1, c.At(10), 1e-12)
	require.InDelta(t, .1, c.At(110), 1e-12)
	require.InDelta(t, .55, c.At(160), 1e-12)
	require.Equal(t, .1, c.At(1))
	require.Equal(t, 2.0, Cosine{Base: 2, MinRatio: 1}.At(0), "no warm-up")
}
