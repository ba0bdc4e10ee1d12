package ops

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"deeploop/internal/graph"
	"deeploop/internal/kernel"
)

func TestTranspose(t *testing.T) {
	for _, typ := range []kernel.DType{kernel.Float32, kernel.Float64, kernel.BFloat16} {
		for _, s := range [][3]int{{1, 1, 1}, {3, 2, 5}, {2, 17, 33}, {5, 16, 1}} {
			batch, rows, cols := s[0], s[1], s[2]
			x, y, z := kernel.Alloc(typ, batch*rows*cols), kernel.Alloc(typ, batch*rows*cols), kernel.Alloc(typ, batch*rows*cols)
			for i := range x.Len() {
				x.SetAt(i, float64(i%251))
			}
			transpose(y, x, batch, rows, cols, 2)
			for i := range batch {
				for r := range rows {
					for c := range cols {
						require.Equal(t, x.At((i*rows+r)*cols+c), y.At((i*cols+c)*rows+r))
					}
				}
			}
			transpose(z, y, batch, cols, rows, 3)
			require.Equal(t, x.Bytes(), z.Bytes())
		}
	}
}

func TestTransposeGradient(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	in, across, head := randomParam(r, "in", 4, 4), randomParam(r, "across", 3, 3), randomParam(r, "head", 3, 4)
	checkGradients(t, []*graph.Param{in, across, head}, func(b *graph.Builder) *graph.Node {
		x := Linear(b, randomInput(b, r, 6, 4), in) // two rows of three positions
		return lossOf(b, r, Transpose(b, Linear(b, Transpose(b, x, 2), across), 2), head)
	})
}
