//go:build cgo

package simd

import (
	"testing"

	"github.com/stretchr/testify/require"

	"deeploop/internal/kernel"
	"deeploop/internal/kerneltest"
)

// Where dot products of bf16 are fast no level uses floats for attention of
// bf16 on AVX-512, and where they are slow none uses dot products.
func TestAttentionWithEveryEngine(t *testing.T) {
	if why := Missing(AVX512); why != "" {
		t.Skip(why)
	}
	var cases []kerneltest.Case
	for _, c := range kerneltest.Cases() {
		if c.Op == "Attention" || c.Op == "AttentionBackward" {
			cases = append(cases, c)
		}
	}
	require.NotEmpty(t, cases)
	agree := func(t *testing.T, set func(b *Backend)) {
		kerneltest.AgreeOn(t, func(threads int) kernel.Backend {
			b, err := Open(AVX512, threads)
			require.NoError(t, err)
			set(b)
			return b
		}, cases, kernel.BFloat16)
	}
	t.Run("widened", func(t *testing.T) { agree(t, func(b *Backend) { b.bf16 = engineFMA }) })
	if HasBF16Dot() {
		t.Run("dot products", func(t *testing.T) { agree(t, func(b *Backend) { b.bf16 = engineDot }) })
	}
}
