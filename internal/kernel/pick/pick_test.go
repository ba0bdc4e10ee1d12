package pick

import (
	"testing"

	"github.com/stretchr/testify/require"

	"deeploop/internal/kernel"
)

func TestEveryAvailableKernelOpens(t *testing.T) {
	have := Available()
	require.Equal(t, "ref", have[0])
	for _, name := range have {
		c, err := Open(Request{Kernel: name, Precision: "fp32", Threads: 2})
		require.NoError(t, err)
		require.Equal(t, name, c.Backend.Name())
		require.Equal(t, 2, c.Backend.Threads())
		require.Equal(t, kernel.Float32, c.Precision)
		require.Contains(t, c.Reason, "asked for")
		c.Backend.Close()
	}
}

func TestAuto(t *testing.T) {
	c, err := Open(Request{Kernel: Auto, Precision: Auto, Threads: 0})
	require.NoError(t, err)
	defer c.Backend.Close()
	have := Available()
	require.Equal(t, have[len(have)-1], c.Backend.Name())
	require.Positive(t, c.Backend.Threads())
	if bf16Unit(c.Backend.Name()) != "" {
		require.Equal(t, kernel.BFloat16, c.Precision)
	} else {
		require.Equal(t, kernel.Float32, c.Precision)
	}
}

func TestReasonNamesWhoAsked(t *testing.T) {
	c, err := Open(Request{Kernel: "ref", Precision: "fp32", KernelFrom: "as before", PrecisionFrom: "the file"})
	require.NoError(t, err)
	require.Contains(t, c.Reason, "ref (as before), fp32 (the file)")
}

func TestRefusals(t *testing.T) {
	for _, bad := range [][2]string{{"sse", "fp32"}, {"ref", "fp16"}} {
		_, err := Open(Request{Kernel: bad[0], Precision: bad[1], Threads: 1})
		var e *Error
		require.ErrorAs(t, err, &e)
		require.True(t, e.BadInput())
	}
	_, err := Open(Request{Kernel: "ref", Precision: "fp32", Threads: -1})
	require.ErrorContains(t, err, "threads is -1")
	for _, k := range Kernels {
		if missing(k) != "" {
			_, err := Open(Request{Kernel: k, Precision: "fp32", Threads: 1})
			require.ErrorContains(t, err, "does not run here")
			require.ErrorContains(t, err, "available: ref")
		}
	}
}
