//go:build cgo

package simd

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"deeploop/internal/kernel"
)

// BenchmarkProducts measures each product for the model's shapes in GFLOP/s and
// as a share of what the level's instructions reach at best, probed right before
// each run, since the speed of a shared machine changes within milliseconds. The
// fast levels also run on two threads. It takes two to three minutes.
func BenchmarkProducts(b *testing.B) {
	eachLevelAndType(func(l Level, dt kernel.DType) {
		threads := []int{1, 2}
		if l < AVX512 {
			threads = threads[:1]
		}
		if l == Portable && dt == kernel.BFloat16 {
			return // widened, then the same
		}
		for _, s := range []shape{{6464, 384, 128}, {3604, 1536, 512}, {901, 512, 1536}, {64, 512, 512}} {
			benchmarkProducts(b, l, dt, s, threads)
		}
	})
}

// eachLevelAndType runs f for every level that runs here and every type.
func eachLevelAndType(f func(l Level, dt kernel.DType)) {
	for _, l := range Levels {
		if Missing(l) != "" {
			continue
		}
		for _, dt := range []kernel.DType{kernel.Float32, kernel.BFloat16} {
			f(l, dt)
		}
	}
}

// timeBesideProbe runs b.N turns of a probe of so many rounds, run, and what
// else there is. It reports what run makes of its operations in GFLOP/s and as
// a share of the probe's rate, and returns the former in operations per second
// and the seconds of a turn of else.
func timeBesideProbe(b *testing.B, be *Backend, dt kernel.DType, rounds int, flops float64, run, also func()) (rate, seconds float64) {
	var probed float64
	var probe, work, other time.Duration
	for range b.N {
		t0 := time.Now()
		probed += be.ProbeProducts(dt, rounds)
		t1 := time.Now()
		run()
		t2 := time.Now()
		also()
		t3 := time.Now()
		probe, work, other = probe+t1.Sub(t0), work+t2.Sub(t1), other+t3.Sub(t2)
	}
	rate = flops * float64(b.N) / work.Seconds()
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(rate/1e9, "GFLOP/s")
	b.ReportMetric(rate/(probed/probe.Seconds()), "of-ceiling")
	return rate, other.Seconds() / float64(b.N)
}

func benchmarkProducts(b *testing.B, l Level, dt kernel.DType, s shape, counts []int) {
	r := rand.New(rand.NewPCG(1, 1))
	x, dy := fill(r, kernel.Alloc(dt, s.m*s.k)), fill(r, kernel.Alloc(dt, s.m*s.n))
	y, dx, dw := kernel.Alloc(dt, s.m*s.n), kernel.Alloc(dt, s.m*s.k), kernel.Alloc(kernel.Float32, s.n*s.k)
	w := &kernel.Weight{Data: fill(r, kernel.Alloc(kernel.Float32, s.n*s.k)), Rows: s.n, Cols: s.k}
	for _, op := range []struct {
		name string
		run  func(be *Backend)
	}{
		{"Linear", func(be *Backend) { be.Linear(y, x, w) }},
		{"LinearDX", func(be *Backend) { be.LinearDX(dx, dy, w, false) }},
		{"LinearDW", func(be *Backend) { be.LinearDW(dw, dy, x, s.n, s.k, false) }},
	} {
		for _, threads := range counts {
			b.Run(fmt.Sprintf("%v/%v/%s/M=%d,N=%d,K=%d/threads=%d", l, dt, op.name, s.m, s.n, s.k, threads), func(b *testing.B) {
				be, err := Open(l, threads)
				if err != nil {
					b.Fatal(err)
				}
				defer be.Close()
				op.run(be)
				timeBesideProbe(b, be, dt, 500, 2*float64(s.m)*float64(s.n)*float64(s.k), func() { op.run(be) }, func() {})
			})
		}
	}
}

// BenchmarkProductsOnce measures products with a weight that is new each time.
func BenchmarkProductsOnce(b *testing.B) {
	l := AVX512
	if Missing(l) != "" {
		b.Skip("needs AVX-512")
	}
	for _, s := range []shape{{256, 4096, 768}, {256, 2304, 768}, {256, 768, 768}, {256, 768, 2048}, {256, 50304, 768}, {916, 1536, 512}} {
		benchmarkProductsOnce(b, l, s)
	}
}

func benchmarkProductsOnce(b *testing.B, l Level, s shape) {
	dt := kernel.BFloat16
	r := rand.New(rand.NewPCG(1, 1))
	x, dy := fill(r, kernel.Alloc(dt, s.m*s.k)), fill(r, kernel.Alloc(dt, s.m*s.n))
	y, dx := kernel.Alloc(dt, s.m*s.n), kernel.Alloc(dt, s.m*s.k)
	w := &kernel.Weight{Data: fill(r, kernel.Alloc(kernel.Float32, s.n*s.k)), Rows: s.n, Cols: s.k}
	flush := kernel.Alloc(kernel.Float32, 32<<20)
	for _, op := range []struct {
		name string
		run  func(be *Backend)
	}{
		{"Linear", func(be *Backend) { be.Linear(y, x, w) }},
		{"LinearDX", func(be *Backend) { be.LinearDX(dx, dy, w, false) }},
	} {
		b.Run(fmt.Sprintf("%s/M=%d,N=%d,K=%d", op.name, s.m, s.n, s.k), func(b *testing.B) {
			be, err := Open(l, 2)
			if err != nil {
				b.Fatal(err)
			}
			defer be.Close()
			var work []time.Duration
			for range b.N {
				w.Version++
				be.Lerp(flush, flush, .5) // out of the cache
				t0 := time.Now()
				op.run(be)
				work = append(work, time.Since(t0))
			}
			slices.Sort(work)
			b.ReportMetric(0, "ns/op")
			b.ReportMetric(2*float64(s.m)*float64(s.n)*float64(s.k)/work[len(work)/4].Seconds()/1e9, "GFLOP/s")
		})
	}
}
