//go:build cgo && (asan || emulate_amx)

package simd_test

import (
	"testing"

	"deeploop/internal/kernel"
	"deeploop/internal/kerneltest"
)

// A minute, several under the address sanitizer: for make asan and test-amx.
func TestTails(t *testing.T) {
	cases := kerneltest.Tails()
	each(t, func(t *testing.T, open kerneltest.Open) {
		kerneltest.AgreeOn(t, open, cases, kernel.Float32, kernel.BFloat16)
	})
}
