package optim

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"deeploop/internal/goldentest"
	"deeploop/internal/kernel"
	"deeploop/internal/kernel/ref"
	"deeploop/internal/safetensors"
)

// both runs check on every golden file of a kind and on the copies kept here.
func both(t *testing.T, name, ext string, check func(t *testing.T, path string)) {
	goldentest.Each(t, goldentest.Cases(t, "testdata", name+"*"+ext), check)
}

// setting decodes a JSON value of a file's metadata.
func setting[T any](t *testing.T, f *safetensors.File, key string) T {
	var v T
	require.NoError(t, json.Unmarshal([]byte(f.Metadata[key]), &v), key)
	return v
}

func open(t *testing.T, path string) *safetensors.File {
	f, err := safetensors.Open(path)
	require.NoError(t, err)
	t.Cleanup(func() { f.Close() })
	return f
}

func floats(t *testing.T, f *safetensors.File, name string) []float32 {
	x, err := f.Float32s(name)
	require.NoError(t, err)
	return x
}

func TestAdamATan2Golden(t *testing.T) {
	both(t, "adam_atan2", ".safetensors", func(t *testing.T, path string) {
		f := open(t, path)
		rates := setting[[]float64](t, f, "lr")
		betas := setting[[]float64](t, f, "betas")
		opt := AdamATan2{Beta1: betas[0], Beta2: betas[1], WeightDecay: setting[float64](t, f, "weight_decay")}
		b := ref.New(1)
		defer b.Close()
		var params []Param
		for i := 0; f.Has(fmt.Sprintf("p%d.init", i)); i++ {
			w := kernel.F32(floats(t, f, fmt.Sprintf("p%d.init", i)))
			params = append(params, NewParam(fmt.Sprintf("p%d", i), w, kernel.Alloc(kernel.Float32, w.Len()), nil))
		}
		require.NotEmpty(t, params)
		for n, lr := range rates {
			for i := range params {
				copy(params[i].G.Float32s(), floats(t, f, fmt.Sprintf("p%d.grad%d", i, n+1)))
			}
			opt.Step(b, params, lr)
			for i := range params {
				at := fmt.Sprintf("p%d, step %d", i, n+1)
				require.InDeltaSlice(t, floats(t, f, fmt.Sprintf("p%d.after%d", i, n+1)), params[i].W.Float32s(), 1e-6, at)
				near(t, floats(t, f, fmt.Sprintf("p%d.exp_avg%d", i, n+1)), params[i].M.Float32s(), 1e-6, at)
				near(t, floats(t, f, fmt.Sprintf("p%d.exp_avg_sq%d", i, n+1)), params[i].V.Float32s(), 1e-6, at)
			}
		}
		require.Equal(t, len(rates), opt.Steps)
	})
}

// near compares relatively, and absolutely within one subnormal step below the
// normal range.
func near(t *testing.T, want, got []float32, rel float64, at string) {
	require.Len(t, got, len(want), at)
	for i := range want {
		w, g := float64(want[i]), float64(got[i])
		require.LessOrEqual(t, math.Abs(w-g), max(rel*math.Abs(w), 2*math.SmallestNonzeroFloat32), "%s, element %d: %g, want %g", at, i, g, w)
	}
}

func TestSparseSignSGDGolden(t *testing.T) {
	both(t, "sparse_signsgd", ".safetensors", func(t *testing.T, path string) {
		f := open(t, path)
		opt := SparseSignSGD{WeightDecay: setting[float64](t, f, "weight_decay")}
		table := floats(t, f, "weights.init")
		ndim := f.Tensors["weights.init"].Shape[1]
		b := ref.New(1)
		defer b.Close()
		for n, lr := range setting[[]float64](t, f, "lr") {
			ids, err := f.Int32s(fmt.Sprintf("ids%d", n+1))
			require.NoError(t, err)
			opt.Step(b, kernel.F32(table), ndim, ids, kernel.F32(floats(t, f, fmt.Sprintf("grad%d", n+1))), lr)
			for i, want := range floats(t, f, fmt.Sprintf("weights.after%d", n+1)) {
				ulp := float64(math.Nextafter32(float32(math.Abs(float64(want))), math.MaxFloat32)) - math.Abs(float64(want))
				require.InDelta(t, want, table[i], ulp, "step %d, element %d", n+1, i)
			}
		}
	})
}

func TestCosineGolden(t *testing.T) {
	both(t, "lr_schedule", ".json", func(t *testing.T, path string) {
		b, err := os.ReadFile(path)
		require.NoError(t, err)
		var rows []struct {
			Step     int     `json:"step"`
			Base     float64 `json:"base_lr"`
			Warmup   int     `json:"num_warmup_steps"`
			Total    int     `json:"num_training_steps"`
			MinRatio float64 `json:"min_ratio"`
			LR       float64 `json:"lr"`
		}
		require.NoError(t, json.Unmarshal(b, &rows))
		require.NotEmpty(t, rows)
		for _, r := range rows {
			got := Cosine{r.Base, r.Warmup, r.Total, r.MinRatio}.At(r.Step)
			require.LessOrEqual(t, math.Abs(got-r.LR), 1e-12*math.Abs(r.LR), "%+v gives %v", r, got)
		}
	})
}
