//go:build cgo

package simd

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"deeploop/internal/kernel"
)

// Every thread does the same number of operations, and they take time: a
// compiler that saw through the loop would show a rate no machine has.
func TestProbeProducts(t *testing.T) {
	for _, dt := range []kernel.DType{kernel.Float32, kernel.BFloat16} {
		eachBackend(t, []int{1, 3}, func(t *testing.T, b *Backend) {
			one := b.ProbeProducts(dt, 1) / float64(b.Threads())
			require.True(t, one > 60000 && one < 70000, "%v: a round is %v operations", dt, one)
			start := time.Now()
			flops := b.ProbeProducts(dt, 300)
			rate := flops / float64(b.Threads()) / time.Since(start).Seconds()
			require.Equal(t, 300*one*float64(b.Threads()), flops)
			require.True(t, rate > 1e7 && rate < 1e13, "%v: %v operations a second", dt, rate)
		})
	}
}

// The copy is whole for lengths on both sides of the cache's, from any address.
func TestProbeCopy(t *testing.T) {
	b, err := Open(Portable, 3)
	require.NoError(t, err)
	defer b.Close()
	r := rand.New(rand.NewPCG(12, 13))
	for _, n := range []int{0, 1, 15, 100, 6000, 5 << 20} {
		src, _ := guarded(kernel.Float32, n)
		for i, f := 0, src.Float32s(); i < n; i++ {
			f[i] = r.Float32()
		}
		dst, ok := guarded(kernel.Float32, n)
		b.ProbeCopy(dst, src)
		require.True(t, ok(), "guard of %d", n)
		require.Equal(t, src.Bytes(), dst.Bytes(), "%d elements", n)
	}
	require.Panics(t, func() { b.ProbeCopy(kernel.Alloc(kernel.Float32, 1), kernel.Alloc(kernel.Float32, 2)) })
}

// BenchmarkProbes gives the ceilings: GFLOP/s of products, GB/s of a copy.
func BenchmarkProbes(b *testing.B) {
	src, dst := kernel.Alloc(kernel.Float32, 24<<20), kernel.Alloc(kernel.Float32, 24<<20)
	for i, f := 0, src.Float32s(); i < len(f); i++ {
		f[i] = float32(i) // memory nobody wrote is one page of zeros, and quick
	}
	for _, l := range Levels {
		if Missing(l) != "" {
			continue
		}
		for _, threads := range []int{1, 2} {
			be, err := Open(l, threads)
			if err != nil {
				b.Fatal(err)
			}
			for _, dt := range []kernel.DType{kernel.Float32, kernel.BFloat16} {
				b.Run(fmt.Sprintf("%v/%v/threads=%d", l, dt, threads), func(b *testing.B) {
					flops := 0.0
					for range b.N {
						flops += be.ProbeProducts(dt, 10000)
					}
					b.ReportMetric(flops/b.Elapsed().Seconds()/1e9, "GFLOP/s")
				})
			}
			if l == Portable {
				b.Run(fmt.Sprintf("copy/threads=%d", threads), func(b *testing.B) {
					b.SetBytes(int64(8 * src.Len()))
					for range b.N {
						be.ProbeCopy(dst, src)
					}
				})
			}
			be.Close()
		}
	}
}
