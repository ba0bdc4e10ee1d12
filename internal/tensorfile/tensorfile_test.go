package tensorfile

import (
	"bytes"
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"deeploop/internal/cli"
	"deeploop/internal/safetensors"
)

func floatsOf(t *testing.T, f *File, name string) (all []float32) {
	t.Helper()
	require.NoError(t, f.Floats(name, func(part []float32) { all = append(all, part...) }))
	return all
}

// Both kinds of file give the same numbers, in any floating type.
func TestBothFormats(t *testing.T) {
	f, err := Open("../torchfile/testdata/kinds.pt")
	require.NoError(t, err)
	defer f.Close()
	require.Equal(t, "PyTorch", f.Format)
	for _, name := range []string{"f32", "f64", "f16", "bf16"} {
		got := floatsOf(t, f, name)
		require.Len(t, got, 24)
		for i, v := range got {
			require.Equal(t, float32(i)/8, v, name)
		}
	}
	for _, name := range []string{"i64", "i32", "i16", "i8", "u8"} {
		var got []int64
		require.NoError(t, f.Ints(name, func(part []int64) { got = append(got, part...) }))
		require.Len(t, got, 24)
		require.Equal(t, int64(2), got[23], name)
	}
	require.ErrorContains(t, f.Ints("f32", nil), "whole numbers")
	require.ErrorContains(t, f.Floats("i32", nil), "F32, BF16, F16 or F64")
	require.ErrorContains(t, f.Floats("none", nil), `no tensor "none"`)

	path := filepath.Join(t.TempDir(), "a.safetensors")
	var b bytes.Buffer
	w, err := safetensors.NewWriter(&b, nil, []safetensors.Entry{{Name: "x", DType: "F16", Shape: []int{6}}})
	require.NoError(t, err)
	require.NoError(t, w.Put([]uint16{0x3c00, 0xc000, 0x0001, 0x7c00, 0x7bff, 0x8000}))
	require.NoError(t, os.WriteFile(path, b.Bytes(), 0o644))
	s, err := Open(path)
	require.NoError(t, err)
	defer s.Close()
	require.Equal(t, "safetensors", s.Format)
	got := floatsOf(t, s, "x")
	require.Equal(t, []float32{1, -2, float32(math.Ldexp(1, -24)), float32(math.Inf(1)), 65504}, got[:5])
	require.True(t, math.Signbit(float64(got[5])))

	require.NoError(t, os.WriteFile(path, b.Bytes()[:b.Len()-1], 0o644))
	_, err = Open(path)
	require.Equal(t, cli.ExitUsage, cli.ExitCode(err), err)
	_, err = Open(t.TempDir())
	require.ErrorContains(t, err, "no regular file")
	_, err = Open("none")
	require.Equal(t, cli.ExitUsage, cli.ExitCode(err), err)
}
