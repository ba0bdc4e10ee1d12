package ref_test

import (
	"testing"

	"deeploop/internal/kernel"
	"deeploop/internal/kernel/ref"
	"deeploop/internal/kerneltest"
)

func open(threads int) kernel.Backend { return ref.New(threads) }

// float32 and bfloat16 against float64.
func TestMatchesRef(t *testing.T) {
	kerneltest.Agree(t, open, kernel.Float32, kernel.BFloat16, kernel.Float64)
}

func TestGradient(t *testing.T) { kerneltest.Gradient(t, ref.New(2)) }

func TestGolden(t *testing.T) { kerneltest.Golden(t, ref.New(2), kernel.Float32, kernel.Float64) }

func BenchmarkRef(b *testing.B) { kerneltest.Speed(b, open(0), kernel.Float32) }
