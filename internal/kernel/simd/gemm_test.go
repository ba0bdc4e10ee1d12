//go:build cgo

package simd

import (
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"deeploop/internal/kernel"
)

// shape is a product y[M,N] = x[M,K]·W[N,K]ᵀ.
type shape struct{ m, n, k int }

// shapes has one row, odd tails on every side of every register tile, blocks
// of the sum on both sides of their bounds, and enough rows for several chunks.
var shapes = []shape{
	{1, 1, 1}, {1, 2, 3}, {2, 1, 2}, {3, 12, 31}, {5, 33, 17}, {7, 16, 32}, {13, 15, 33},
	{14, 32, 64}, {15, 31, 65}, {16, 17, 30}, {17, 48, 95}, {20, 2, 70}, {29, 40, 8}, {31, 64, 129},
	{32, 32, 32}, {33, 96, 96}, {40, 12, 128}, {47, 65, 31}, {63, 1, 1}, {64, 31, 100}, {65, 129, 34},
	{100, 12, 512}, {113, 20, 513}, {20, 34, 1030}, {257, 70, 63}, {300, 7, 5}, {521, 37, 33},
	{1030, 3, 2}, {2100, 17, 20}, {4100, 5, 9}, {1600, 20, 70},
}

const guard = 0x7fc1 // two of them make a NaN, so that a stray read shows too

// guarded returns n elements that start off the alignment by one element, with
// guard words around them, and a check that the guards are whole.
func guarded(t kernel.DType, n int) (kernel.Buf, func() bool) {
	const pad = 69
	all := kernel.Alloc(t, n+2*pad)
	whole := func() bool {
		raw := all.Bytes()
		size := t.Size()
		for i := 0; i+1 < len(raw); i += 2 {
			if i >= pad*size && i < (pad+n)*size {
				continue
			}
			if int(raw[i])|int(raw[i+1])<<8 != guard {
				return false
			}
		}
		return true
	}
	raw := all.Bytes()
	for i := 0; i+1 < len(raw); i += 2 {
		raw[i], raw[i+1] = guard&0xff, guard>>8
	}
	return all.Slice(pad, pad+n), whole
}

func fill(r *rand.Rand, b kernel.Buf) kernel.Buf {
	for i := range b.Len() {
		b.SetAt(i, r.NormFloat64())
	}
	return b
}

// roundsWeights reports that b rounds weights to bf16 for activations of type t.
func roundsWeights(b *Backend, t kernel.DType) bool { return b.engine(ctype(t)) != engineFMA }

func eachBackend(t *testing.T, threads []int, f func(t *testing.T, b *Backend)) {
	for _, l := range Levels {
		if why := Missing(l); why != "" {
			t.Logf("level %v does not run here: %s", l, why)
			continue
		}
		for _, n := range threads {
			t.Run(fmt.Sprintf("%v/threads=%d", l, n), func(t *testing.T) {
				b, err := Open(l, n)
				require.NoError(t, err)
				defer b.Close()
				f(t, b)
			})
		}
	}
}

// operand is a matrix of float64: element (i, j) is at i*ri + j*cj.
type operand struct {
	v      []float64
	ri, cj int
}

func matrix(b kernel.Buf, cols int) operand {
	v := make([]float64, b.Len())
	for i := range v {
		v[i] = b.At(i)
	}
	return operand{v, cols, 1}
}

func (o operand) t() operand { return operand{o.v, o.cj, o.ri} }

func (o operand) bf16() operand {
	for i, v := range o.v {
		o.v[i] = float64(kernel.ToBF16(float32(v)).Float32())
	}
	return o
}

// requireProduct checks got[m,n] against old + a[m,d]·b[d,n] summed in float64. The
// bound is that of a float32 sum of d terms, plus one rounding to got's type.
func requireProduct(t *testing.T, got, old kernel.Buf, a, b operand, m, n, d int, msg string) {
	t.Helper()
	eps := math.Pow(2, -23)
	for i := range m {
		for j := range n {
			sum, abs := 0.0, 0.0
			for p := range d {
				v := a.v[i*a.ri+p*a.cj] * b.v[p*b.ri+j*b.cj]
				sum += v
				abs += math.Abs(v)
			}
			if !old.Absent() {
				sum += old.At(i*n + j)
				abs += math.Abs(old.At(i*n + j))
			}
			tol := eps * abs * (2 + math.Sqrt(float64(d)))
			if got.Type() == kernel.BFloat16 {
				tol += math.Abs(sum) / 256
			}
			if g := got.At(i*n + j); !(math.Abs(g-sum) <= tol+1e-30) {
				require.Failf(t, "wrong product", "%s: [%d,%d] is %v, expected %v ± %v", msg, i, j, g, sum, tol)
			}
		}
	}
}

func copyOf(b kernel.Buf) kernel.Buf {
	c := kernel.Alloc(b.Type(), b.Len())
	copy(c.Bytes(), b.Bytes())
	return c
}

func TestProducts(t *testing.T) {
	eachBackend(t, []int{3}, func(t *testing.T, b *Backend) {
		r := rand.New(rand.NewPCG(1, 2))
		for _, s := range shapes {
			for _, dt := range []kernel.DType{kernel.Float32, kernel.BFloat16} {
				checkProducts(t, b, r, s, dt)
			}
		}
	})
}

// AVX-512 has two ways for bf16, of which a processor uses one.
func TestProductsOfBF16OnAVX512(t *testing.T) {
	if Missing(AVX512) != "" {
		return
	}
	b, err := Open(AVX512, 2)
	require.NoError(t, err)
	defer b.Close()
	check := func(t *testing.T) {
		r := rand.New(rand.NewPCG(10, 11))
		for _, s := range shapes {
			checkProducts(t, b, r, s, kernel.BFloat16)
		}
	}
	b.bf16 = engineFMA
	t.Run("widened", check)
	if HasBF16Dot() {
		b.bf16 = engineDot
		t.Run("dot products", check)
	}
}

func checkProducts(t *testing.T, b *Backend, r *rand.Rand, s shape, dt kernel.DType) {
	x, xOK := guarded(dt, s.m*s.k)
	dy, dyOK := guarded(dt, s.m*s.n)
	data, wOK := guarded(kernel.Float32, s.n*s.k)
	fill(r, x)
	fill(r, dy)
	fill(r, data)
	w := &kernel.Weight{Data: data, Rows: s.n, Cols: s.k}
	wm := matrix(data, s.k)
	if roundsWeights(b, dt) {
		wm = wm.bf16()
	}
	msg := func(op string) string { return fmt.Sprintf("%s %v %v", op, s, dt) }

	for _, yt := range []kernel.DType{dt, kernel.Float32} {
		y, ok := guarded(yt, s.m*s.n)
		b.Linear(y, x, w)
		require.True(t, ok(), msg("guard of Linear"))
		requireProduct(t, y, kernel.Buf{}, matrix(x, s.k), wm.t(), s.m, s.n, s.k, msg("Linear"))
	}
	for _, add := range []bool{false, true} {
		dx, ok := guarded(dt, s.m*s.k)
		old := kernel.Buf{}
		if add {
			old = copyOf(fill(r, dx))
		}
		b.LinearDX(dx, dy, w, add)
		require.True(t, ok(), msg("guard of LinearDX"))
		requireProduct(t, dx, old, matrix(dy, s.n), wm, s.m, s.k, s.n, msg("LinearDX"))

		dw, ok := guarded(kernel.Float32, s.n*s.k)
		if add {
			old = copyOf(fill(r, dw))
		}
		b.LinearDW(dw, dy, x, s.n, s.k, add)
		require.True(t, ok(), msg("guard of LinearDW"))
		requireProduct(t, dw, old, matrix(dy, s.n).t(), matrix(x, s.k), s.n, s.k, s.m, msg("LinearDW"))
	}
	require.True(t, xOK() && dyOK() && wOK(), msg("guard of a source"))
}

// A row of a product does not depend on the number of threads, and a weight's
// gradient neither; and calling again gives the same bytes.
func TestProductsAreDeterministic(t *testing.T) {
	const m, n, k = 1700, 200, 300 // gradients of weights in two parts
	for _, l := range Levels {
		if Missing(l) != "" {
			continue
		}
		for _, dt := range []kernel.DType{kernel.Float32, kernel.BFloat16} {
			r := rand.New(rand.NewPCG(3, 4))
			x, dy := fill(r, kernel.Alloc(dt, m*k)), fill(r, kernel.Alloc(dt, m*n))
			w := &kernel.Weight{Data: fill(r, kernel.Alloc(kernel.Float32, n*k)), Rows: n, Cols: k}
			var want [3][]byte
			for _, threads := range []int{1, 2, 3, 2} {
				b, err := Open(l, threads)
				require.NoError(t, err)
				y, dx, dw := kernel.Alloc(dt, m*n), kernel.Alloc(dt, m*k), kernel.Alloc(kernel.Float32, n*k)
				b.Linear(y, x, w)
				b.LinearDX(dx, dy, w, false)
				b.LinearDW(dw, dy, x, n, k, false)
				part := kernel.Alloc(dt, 5*n)
				b.Linear(part, x.Slice(700*k, 705*k), w)
				b.Close()
				got := [3][]byte{y.Bytes(), dx.Bytes(), dw.Bytes()}
				if want[0] == nil {
					want = got
				}
				for i := range got {
					require.Equal(t, want[i], got[i], "%v %v threads %d output %d", l, dt, threads, i)
				}
				require.Equal(t, y.Slice(700*n, 705*n).Bytes(), part.Bytes(), "%v %v: rows of a shorter x", l, dt)
			}
		}
	}
}

// A packed copy follows the version, the memory and the backend.
func TestPackedWeightsFollowTheirVersion(t *testing.T) {
	eachBackend(t, []int{2}, func(t *testing.T, b *Backend) {
		r := rand.New(rand.NewPCG(5, 6))
		const m, n, k = 40, 50, 60
		x, y := fill(r, kernel.Alloc(kernel.BFloat16, m*k)), kernel.Alloc(kernel.Float32, m*n)
		dx := kernel.Alloc(kernel.BFloat16, m*k)
		dy := fill(r, kernel.Alloc(kernel.BFloat16, m*n))
		w := &kernel.Weight{Data: fill(r, kernel.Alloc(kernel.Float32, n*k)), Rows: n, Cols: k}
		check := func(b *Backend) {
			t.Helper()
			wm := matrix(w.Data, k)
			if roundsWeights(b, kernel.BFloat16) {
				wm = wm.bf16()
			}
			b.Linear(y, x, w)
			requireProduct(t, y, kernel.Buf{}, matrix(x, k), wm.t(), m, n, k, "Linear")
			b.LinearDX(dx, dy, w, false)
			requireProduct(t, dx, kernel.Buf{}, matrix(dy, n), wm, m, k, n, "LinearDX")
		}
		for range packUses(m) { // in the end the copies are the weight's own
			check(b)
			b.scratch, b.inScratch = kernel.Buf{}, nil // taken by another weight
		}
		check(b)
		old := w.Packed.(*packs).slots
		fill(r, w.Data)
		before := copyOf(y)
		b.Linear(y, x, w)
		require.Equal(t, before.Bytes(), y.Bytes(), "the same version must not be packed again")
		w.Version++
		check(b)
		for e := range old {
			for l := range old[e] {
				require.Equal(t, old[e][l].buf.Ptr(), w.Packed.(*packs).slots[e][l].buf.Ptr(), "buffers are reused")
			}
		}
		w.Data = fill(r, kernel.Alloc(kernel.Float32, n*k))
		check(b)
		other, err := Open(Portable, 1)
		require.NoError(t, err)
		defer other.Close()
		check(other)
		w.Version++
		fill(r, w.Data)
		check(b)
	})
}

// A weight keeps a copy once a version was used often enough, not before.
func TestPackedWhereItPays(t *testing.T) {
	eachBackend(t, []int{2}, func(t *testing.T, b *Backend) {
		r := rand.New(rand.NewPCG(7, 8))
		const m = 9
		type use struct {
			w     *kernel.Weight
			x, y  kernel.Buf
			check func()
		}
		var uses []use
		for i := range 4 {
			n, k := 30+17*i, 70-9*i
			u := use{
				w: &kernel.Weight{Data: kernel.Alloc(kernel.Float32, n*k), Rows: n, Cols: k},
				x: fill(r, kernel.Alloc(kernel.BFloat16, m*k)), y: kernel.Alloc(kernel.Float32, m*n),
			}
			u.check = func() {
				t.Helper()
				wm := matrix(u.w.Data, k)
				if roundsWeights(b, kernel.BFloat16) {
					wm = wm.bf16()
				}
				b.Linear(u.y, u.x, u.w)
				requireProduct(t, u.y, kernel.Buf{}, matrix(u.x, k), wm.t(), m, n, k, "Linear")
			}
			uses = append(uses, u)
		}
		write := func() {
			for _, u := range uses {
				fill(r, u.w.Data)
				u.w.Version++
			}
		}
		own := func(u use) int {
			total := 0
			for _, e := range u.w.Packed.(*packs).slots {
				for _, s := range e {
					total += s.buf.Len()
				}
			}
			return total
		}
		for range 3 {
			write()
			for range packUses(m) - 1 {
				for _, u := range uses {
					u.check()
				}
			}
		}
		for _, u := range uses {
			require.Zero(t, own(u), "used too little in one version")
		}
		uses[1].check() // others have taken the scratch of tiles
		require.NotZero(t, own(uses[1]))
		for range 2 {
			write()
			for _, u := range uses {
				u.check()
			}
			before := copyOf(uses[1].y)
			fill(r, uses[1].w.Data) // without a new version
			b.Linear(uses[1].y, uses[1].x, uses[1].w)
			require.Equal(t, before.Bytes(), uses[1].y.Bytes(), "the same version must not be packed again")
		}
		require.Zero(t, own(uses[0]))
	})
}

// Products of very many rows take turns in scratch, keep no copy and notice
// what is written.
func TestVeryManyRowsGoByWayOfScratch(t *testing.T) {
	eachBackend(t, []int{1, 3}, func(t *testing.T, b *Backend) {
		r := rand.New(rand.NewPCG(15, 16))
		const m, n, k = scratchRows, 40, 24
		x, y := fill(r, kernel.Alloc(kernel.Float32, m*k)), kernel.Alloc(kernel.Float32, m*n)
		var weights [2]*kernel.Weight
		for i := range weights {
			weights[i] = &kernel.Weight{Data: fill(r, kernel.Alloc(kernel.Float32, n*k)), Rows: n, Cols: k}
		}
		for round := range packUses(m) + 2 {
			for i, w := range weights {
				if round%2 == i {
					fill(r, w.Data)
					w.Version++
				}
				for range 2 {
					b.Linear(y, x, w)
					requireProduct(t, y, kernel.Buf{}, matrix(x, k), matrix(w.Data, k).t(), m, n, k, "Linear")
				}
				s := &w.Packed.(*packs).slots[b.engine(ctype(x.Type()))][0]
				require.Same(t, s, b.inScratch)
				require.True(t, s.buf.Absent())
			}
		}
	})
}

// A product that packs on the way gives the bits of one with a copy.
func TestUnpackedProductsAreTheSame(t *testing.T) {
	eachBackend(t, []int{1, 3}, func(t *testing.T, b *Backend) {
		r := rand.New(rand.NewPCG(12, 13))
		for _, s := range append(shapes, shape{300, 70, 2500}, shape{530, 257, 2048}, shape{29, 1100, 33}) {
			for _, dt := range []kernel.DType{kernel.Float32, kernel.BFloat16} {
				x, dy := fill(r, kernel.Alloc(dt, s.m*s.k)), fill(r, kernel.Alloc(dt, s.m*s.n))
				w := &kernel.Weight{Data: fill(r, kernel.Alloc(kernel.Float32, s.n*s.k)), Rows: s.n, Cols: s.k}
				y, dx := kernel.Alloc(dt, s.m*s.n), fill(r, kernel.Alloc(dt, s.m*s.k))
				old, c := copyOf(dx), ctype(dt)
				engine := b.engine(c)
				if engine != engineTile {
					b.onTheWay(y, c, x, c, w, engine, 0, s.m, s.n, s.k, 0)
					b.onTheWay(dx, c, dy, c, w, engine, 1, s.m, s.k, s.n, 1)
				} else {
					b.Linear(y, x, w)
					b.LinearDX(dx, dy, w, true)
				}
				first := [][]byte{copyOf(y).Bytes(), copyOf(dx).Bytes()}
				for range packUses(s.m) {
					b.Linear(y, x, w)
					copy(dx.Bytes(), old.Bytes())
					b.LinearDX(dx, dy, w, true)
				}
				if engine != engineTile {
					require.Equal(t, s.m >= scratchRows, w.Packed.(*packs).slots[engine][0].buf.Absent())
				}
				require.Equal(t, first, [][]byte{y.Bytes(), dx.Bytes()}, "%v %v", s, dt)
			}
		}
	})
}

// Go's collector runs, goroutines are preempted and several backends work at
// the same time.
func TestProductsUnderTheRuntime(t *testing.T) {
	stop := make(chan struct{})
	var churn, work sync.WaitGroup
	churn.Add(1)
	go func() {
		defer churn.Done()
		for {
			select {
			case <-stop:
				return
			default:
				runtime.GC()
			}
		}
	}()
	for g := range 6 {
		l := Levels[(len(Levels)-1-g%3)%len(Levels)]
		if Missing(l) != "" {
			l = Portable
		}
		work.Add(1)
		go func() {
			defer work.Done()
			b, err := Open(l, 1+g%3)
			if err != nil {
				t.Error(err)
				return
			}
			defer b.Close()
			r := rand.New(rand.NewPCG(uint64(g), 7))
			const m, n, k = 200, 70, 90
			x, dy := fill(r, kernel.Alloc(kernel.BFloat16, m*k)), fill(r, kernel.Alloc(kernel.BFloat16, m*n))
			w := &kernel.Weight{Data: fill(r, kernel.Alloc(kernel.Float32, n*k)), Rows: n, Cols: k}
			var want []byte
			for range 60 {
				y, dw := kernel.Alloc(kernel.BFloat16, m*n), kernel.Alloc(kernel.Float32, n*k)
				b.Linear(y, x, w)
				b.LinearDW(dw, dy, x, n, k, false)
				got := append(y.Bytes(), dw.Bytes()...)
				if want == nil {
					want = got
				} else if string(want) != string(got) {
					t.Errorf("%v: the same product gave other bytes", l)
					return
				}
			}
		}()
	}
	work.Wait()
	close(stop)
	churn.Wait()
}

func TestProductsRefuseFloat64(t *testing.T) {
	b, err := Open(Portable, 1)
	require.NoError(t, err)
	defer b.Close()
	w := &kernel.Weight{Data: kernel.Alloc(kernel.Float64, 6), Rows: 2, Cols: 3}
	x, y := kernel.Alloc(kernel.Float64, 3), kernel.Alloc(kernel.Float64, 2)
	require.PanicsWithValue(t, badFloat64, func() { b.Linear(y, x, w) })
	require.PanicsWithValue(t, badFloat64, func() { b.LinearDX(x, y, w, false) })
	require.PanicsWithValue(t, badFloat64, func() { b.LinearDW(w.Data, y, x, 2, 3, false) })
}

// Nothing to do is legal: no rows, and a gradient of no rows is zero.
func TestProductsOfNoRows(t *testing.T) {
	eachBackend(t, []int{2}, func(t *testing.T, b *Backend) {
		w := &kernel.Weight{Data: kernel.Alloc(kernel.Float32, 6), Rows: 2, Cols: 3}
		none := kernel.Alloc(kernel.Float32, 0)
		b.Linear(none, none, w)
		b.LinearDX(none, none, w, true)
		dw := fill(rand.New(rand.NewPCG(8, 9)), kernel.Alloc(kernel.Float32, 6))
		old := copyOf(dw)
		b.LinearDW(dw, none, none, 2, 3, true)
		require.Equal(t, old.Bytes(), dw.Bytes())
		b.LinearDW(dw, none, none, 2, 3, false)
		require.Equal(t, make([]byte, 24), dw.Bytes())
	})
}
