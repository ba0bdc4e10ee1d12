// Package ref is the plain Go backend: the reference that every other one is
// tested against, and the fallback of builds without cgo.
//
// It computes in the activations' own type where that is Float32 or Float64;
// BFloat16 activations are widened to float32, computed, and rounded once at
// the store. Matrix products and attention sum in that type; everything that
// runs over a row (norms, softmax, losses) and the optimizer steps compute in
// float64 and round at the store, since a reference may be more exact than
// what it checks. Each output element is computed by one goroutine in a fixed
// order, so results do not depend on the number of threads.
package ref

import (
	"runtime"
	"sync"

	"deeploop/internal/kernel"
)

// real is a type ref computes in.
type real interface{ float32 | float64 }

// Backend implements kernel.Backend.
type Backend struct {
	threads int
	scratch [][]float32 // widened copies of BFloat16 buffers
	used    int
	stores  []store
}

type store struct {
	dst kernel.Buf
	src []float32
}

var _ kernel.Backend = (*Backend)(nil)

// New returns a backend that uses up to the given number of goroutines per
// call; 0 means one per processor.
func New(threads int) *Backend {
	if threads <= 0 {
		threads = runtime.GOMAXPROCS(0)
	}
	return &Backend{threads: threads}
}

// Name returns "ref".
func (b *Backend) Name() string { return "ref" }

// Threads returns the number of goroutines a call may use.
func (b *Backend) Threads() int { return b.threads }

// Close has nothing to release.
func (b *Backend) Close() {}

// split runs f over [0, n) in at most b.threads contiguous parts.
func (b *Backend) split(n int, f func(lo, hi int)) {
	parts := min(b.threads, n)
	if parts <= 1 {
		if n > 0 {
			f(0, n)
		}
		return
	}
	var wg sync.WaitGroup
	for i := 1; i < parts; i++ {
		wg.Add(1)
		go func() {
			defer wg.Done()
			f(i*n/parts, (i+1)*n/parts)
		}()
	}
	f(0, n/parts)
	wg.Wait()
}

// widened returns a float32 slice of n elements that lives until flush.
func (b *Backend) widened(n int) []float32 {
	if b.used == len(b.scratch) {
		b.scratch = append(b.scratch, nil)
	}
	s := b.scratch[b.used]
	if cap(s) < n {
		s = make([]float32, n)
		b.scratch[b.used] = s
	}
	b.used++
	return s[:n]
}

// in returns the elements of a source as type S: a view, or a widened copy of
// BFloat16. Absent buffers give nil.
func in[S real](b *Backend, x kernel.Buf) []S {
	if x.Absent() {
		return nil
	}
	switch x.Type() {
	case kernel.Float64:
		return any(x.Float64s()).([]S)
	case kernel.Float32:
		return any(x.Float32s()).([]S)
	}
	src, dst := x.BF16s(), b.widened(x.Len())
	for i, h := range src {
		dst[i] = h.Float32()
	}
	return any(dst).([]S)
}

// out returns where to write the elements of a destination; flush rounds what
// was written for BFloat16. With load the old elements are there to begin
// with.
func out[S real](b *Backend, y kernel.Buf, load bool) []S {
	if y.Absent() || y.Type() != kernel.BFloat16 {
		return in[S](b, y)
	}
	var w []float32
	if load {
		w = any(in[float32](b, y)).([]float32)
	} else {
		w = b.widened(y.Len())
	}
	b.stores = append(b.stores, store{y, w})
	return any(w).([]S)
}

// flush rounds pending BFloat16 results into their buffers and ends the use of
// the widened copies.
func (b *Backend) flush() {
	for _, s := range b.stores {
		dst := s.dst.BF16s()
		for i, f := range s.src {
			dst[i] = kernel.ToBF16(f)
		}
	}
	b.stores, b.used = b.stores[:0], 0
}
