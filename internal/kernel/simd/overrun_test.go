//go:build cgo && asan && unix

package simd_test

import (
	"fmt"
	"os"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"

	"deeploop/internal/kernel"
	"deeploop/internal/kernel/simd"
	"deeploop/internal/kerneltest"
)

const overrunVariable = "DEEPLOOP_TEST_OVERRUN"

// Each level is given a product with an operand that is one element, or one
// vector, shorter than it says. That must end the process: at a fence always;
// without one unless the kernel touches the end with a masked load or store of
// the compiler's, which the sanitizer does not look at (a store is then found
// by the comparison of guards, a load only by a fence).
func TestOverrunsAreSeen(t *testing.T) {
	for _, l := range simd.Levels {
		if why := simd.Missing(l); why != "" {
			t.Logf("level %v is not tested: %s", l, why)
			continue
		}
		for _, typ := range []kernel.DType{kernel.Float32, kernel.BFloat16} {
			for _, operand := range []string{"x", "w", "y"} {
				for _, beyond := range []int{1, 16} {
					for _, fence := range []bool{true, false} {
						what := fmt.Sprintf("%d %d %s %d %v", l, typ, operand, beyond, fence)
						cmd := exec.Command(os.Args[0], "-test.run=^TestOverrun$")
						cmd.Env = append(os.Environ(), overrunVariable+"="+what)
						out, err := cmd.CombinedOutput()
						t.Logf("%v %v, %s %d short, fence %v: seen %v", l, typ, operand, beyond, fence, err != nil)
						if fence {
							require.Error(t, err, what)
						}
						if err != nil {
							require.Regexp(t, "AddressSanitizer|SIGSEGV|SEGV", string(out))
						}
					}
				}
			}
		}
	}
}

// TestOverrun does what TestOverrunsAreSeen asks of it, in its own process.
func TestOverrun(t *testing.T) {
	var l simd.Level
	var typ kernel.DType
	var operand string
	var beyond int
	var fence bool
	if _, err := fmt.Sscan(os.Getenv(overrunVariable), (*int)(&l), (*uint8)(&typ), &operand, &beyond, &fence); err != nil {
		return
	}
	b, err := simd.Open(l, 1)
	require.NoError(t, err)
	const m, n, k = 19, 21, 23
	buf := func(name string, typ kernel.DType, n int) kernel.Buf {
		if name == operand {
			return kerneltest.Overlong(typ, n, beyond, fence)
		}
		return kernel.Alloc(typ, n)
	}
	b.Linear(buf("y", typ, m*n), buf("x", typ, m*k), &kernel.Weight{Data: buf("w", kernel.Float32, n*k), Rows: n, Cols: k})
}
