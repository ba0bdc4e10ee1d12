package ref_test

import (
	"testing"

	"deeploop/internal/kernel"
	"deeploop/internal/kernel/ref"
	"deeploop/internal/kerneltest"
)

func open(threads int) kernel.Backend { return ref.New(threads) }

func TestMatchesRef(t *testing.T) {
	kerneltest.Agree(t, open, kernel.Float32, kernel.BFloat16, kernel.Float64)
}

func BenchmarkRef(b *testing.B) {
	kerneltest.Speed(b, open(0), kernel.Float32)
}
