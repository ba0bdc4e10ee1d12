package ref

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"deeploop/internal/kernel"
)

// Operations are counted for every thread, and take time.
func TestProbeProducts(t *testing.T) {
	for _, dt := range []kernel.DType{kernel.Float32, kernel.Float64, kernel.BFloat16} {
		for _, threads := range []int{1, 3} {
			b := New(threads)
			start := time.Now()
			flops := b.ProbeProducts(dt, 100)
			rate := flops / float64(threads) / time.Since(start).Seconds()
			require.Equal(t, float64(threads*100*65536), flops)
			require.True(t, rate > 1e6 && rate < 1e12, "%v: %v operations a second", dt, rate)
		}
	}
}

func TestProbeCopy(t *testing.T) {
	b := New(3)
	for _, n := range []int{0, 1, 2, 1000} {
		src, dst := kernel.Alloc(kernel.Float32, n), kernel.Alloc(kernel.Float32, n)
		for i, f := 0, src.Float32s(); i < n; i++ {
			f[i] = float32(i + 1)
		}
		b.ProbeCopy(dst, src)
		require.Equal(t, src.Bytes(), dst.Bytes(), "%d elements", n)
	}
	require.Panics(t, func() { b.ProbeCopy(kernel.Alloc(kernel.Float32, 1), kernel.Alloc(kernel.Float32, 2)) })
}
