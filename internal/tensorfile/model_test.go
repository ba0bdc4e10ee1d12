package tensorfile

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"deeploop/internal/kernel"
	"deeploop/internal/safetensors"
)

// Every difference is named, what a caller ignores is none, and what fits is
// read whatever its floating-point type.
func TestFitsAndRead(t *testing.T) {
	path := filepath.Join(t.TempDir(), "m.safetensors")
	out, err := os.Create(path)
	require.NoError(t, err)
	w, err := safetensors.NewWriter(out, nil, []safetensors.Entry{
		{Name: "half", DType: "BF16", Shape: []int{2}}, {Name: "ids", DType: "I32", Shape: []int{1}}, {Name: "more", DType: "F32", Shape: []int{1}},
	})
	require.NoError(t, err)
	for range 3 { // 1 and -2, and whatever that is in the others
		_, err = w.Write([]byte{0x80, 0x3f, 0, 0xc0})
		require.NoError(t, err)
	}
	require.NoError(t, w.Finish())
	require.NoError(t, out.Close())
	f, err := Open(path)
	require.NoError(t, err)
	defer f.Close()

	half := Wanted{Name: "half", Shape: []int{2}, Data: kernel.Alloc(kernel.Float32, 2)}
	none := func(string) bool { return false }
	err = f.Fits([]Wanted{half, {Name: "ids", Shape: []int{1}}, {Name: "gone", Shape: []int{3, 4}}, {Name: "more", Shape: []int{2}}}, none)
	require.EqualError(t, err, "import: the tensors of "+path+" do not fit this model:\n  ids is I32, expected floating-point numbers\n  gone [3 4] is missing\n  more is [1], expected [2]")
	err = f.Fits([]Wanted{half}, none)
	require.ErrorContains(t, err, "ids [1] is not in this model\n  more [1] is not in this model")
	require.NoError(t, f.Fits([]Wanted{half}, func(name string) bool { return name != "half" }))
	require.NoError(t, f.Read(half))
	require.Equal(t, []float32{1, -2}, half.Data.Float32s())

	var many []Wanted
	for range 30 {
		many = append(many, Wanted{Name: strings.Repeat("x", len(many)+1), Shape: []int{1}})
	}
	err = f.Fits(many, none)
	require.ErrorContains(t, err, "and 13 more")
	var bad *ImportError
	require.ErrorAs(t, err, &bad)
	require.True(t, bad.BadInput())
}
