package safetensors

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func write(t *testing.T) []byte {
	var b bytes.Buffer
	w, err := NewWriter(&b, map[string]string{"k": "v"}, []Entry{
		{"b", "F32", []int{2, 3}}, {"none", "I32", []int{0}}, {"a", "U8", []int{3}}, {"s", "F64", nil},
	})
	require.NoError(t, err)
	require.NoError(t, w.Put([]float32{1, 2, 3, 4, 5, 6}))
	_, err = w.Write([]byte{7, 8, 9})
	require.NoError(t, err)
	require.Error(t, w.Finish())
	require.NoError(t, w.Put([]float64{.5}))
	require.NoError(t, w.Finish())
	_, err = w.Write([]byte{1})
	require.Error(t, err)
	return b.Bytes()
}

func TestRoundTrip(t *testing.T) {
	p := filepath.Join(t.TempDir(), "x.safetensors")
	require.NoError(t, os.WriteFile(p, write(t), 0o644))
	f, err := Open(p)
	require.NoError(t, err)
	defer f.Close()
	require.Equal(t, "v", f.Metadata["k"])
	b, err := f.Float32s("b")
	require.NoError(t, err)
	require.Equal(t, []float32{1, 2, 3, 4, 5, 6}, b)
	a, err := f.Uint8s("a")
	require.NoError(t, err)
	require.Equal(t, []uint8{7, 8, 9}, a)
	s, err := f.Float64s("s")
	require.NoError(t, err)
	require.Equal(t, []float64{.5}, s)
	_, err = f.Float32s("a")
	require.ErrorContains(t, err, "U8")
	_, err = f.Float32s("gone")
	require.ErrorContains(t, err, "gone")
	require.Equal(t, 4, len(f.Names()))
}

func TestBrokenFiles(t *testing.T) {
	good := write(t)
	for name, b := range map[string][]byte{
		"empty":     {},
		"short":     good[:20],
		"cut":       good[:len(good)-1],
		"hugeHead":  append([]byte{255, 255, 255, 255, 255, 255, 255, 127}, good[8:]...),
		"notJSON":   append(append([]byte{}, good[:8]...), bytes.Repeat([]byte{'x'}, len(good)-8)...),
		"zeroBytes": make([]byte, 64),
	} {
		p := filepath.Join(t.TempDir(), name)
		require.NoError(t, os.WriteFile(p, b, 0o644))
		_, err := Open(p)
		require.Error(t, err, name)
	}
}
