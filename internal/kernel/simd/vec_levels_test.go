//go:build cgo

package simd

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"deeploop/internal/kernel"
	"deeploop/internal/kerneltest"
)

// Where the processor has AVX512_BF16 no level uses the kernels on bf16 of
// AVX-512 without it, which other processors need.
func TestKernelsOnBF16WithoutItsInstructions(t *testing.T) {
	if why := Missing(AVX512); why != "" {
		t.Skip(why)
	}
	var cases []kerneltest.Case
	for _, c := range kerneltest.Cases() {
		if !strings.HasPrefix(c.Op, "Linear") && !strings.HasPrefix(c.Op, "Attention") { // those have engines
			cases = append(cases, c)
		}
	}
	require.NotEmpty(t, cases)
	kerneltest.AgreeOn(t, func(threads int) kernel.Backend {
		b, err := Open(AVX512, threads)
		require.NoError(t, err)
		b.vec = vecAVX512
		return b
	}, cases, kernel.BFloat16)
}
