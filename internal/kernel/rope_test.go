package kernel_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"deeploop/internal/goldentest"
	"deeploop/internal/kernel"
	"deeploop/internal/safetensors"
)

// Both halves of a recorded row carry the same angles; ours is stored once.
// Tolerance: 1e-6, or 2e-7 a position where that is more.
func TestGoldenRopeTables(t *testing.T) {
	own := filepath.Join(goldentest.Root(), "internal", "kerneltest", "testdata")
	goldentest.Each(t, goldentest.Cases(t, own, "rope*.safetensors"), func(t *testing.T, path string) {
		f, err := safetensors.Open(path)
		require.NoError(t, err)
		defer f.Close()
		tables := 0
		for _, n := range f.Names() {
			if prefix, ok := strings.CutSuffix(n, ".rows"); ok {
				tables++
				t.Run(prefix, func(t *testing.T) { checkTables(t, f, prefix) })
			}
		}
		require.Positive(t, tables)
	})
}

func checkTables(t *testing.T, f *safetensors.File, prefix string) {
	var d, positions int
	var theta float64
	_, err := fmt.Sscanf(prefix, "d%d_n%d_theta%g", &d, &positions, &theta)
	require.NoError(t, err)
	rows, err := f.Int32s(prefix + ".rows")
	require.NoError(t, err)
	wantCos, err := f.Float32s(prefix + ".cos")
	require.NoError(t, err)
	wantSin, err := f.Float32s(prefix + ".sin")
	require.NoError(t, err)
	for _, typ := range []kernel.DType{kernel.Float32, kernel.Float64} {
		cos, sin := kernel.RopeTables(typ, positions, d, theta)
		require.Equal(t, positions*d/2, cos.Len())
		require.Equal(t, typ, sin.Type())
		for r, p := range rows {
			tol := max(1e-6, 2e-7*float64(p))
			for i := range d {
				at := int(p)*d/2 + i%(d/2)
				require.InDelta(t, wantCos[r*d+i], cos.At(at), tol, "cos of position %d, element %d", p, i)
				require.InDelta(t, wantSin[r*d+i], sin.At(at), tol, "sin of position %d, element %d", p, i)
			}
		}
	}
}

func TestRopeTablesOfBFloat16AreMaster(t *testing.T) {
	cos, _ := kernel.RopeTables(kernel.BFloat16, 3, 4, 10000)
	require.Equal(t, kernel.Float32, cos.Type())
}

func TestRopeTablesPanicOnOddHeads(t *testing.T) {
	require.Panics(t, func() { kernel.RopeTables(kernel.Float32, 3, 5, 10000) })
}
