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
