package kerneltest

import (
	"encoding/json"
	"fmt"
	"math"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"deeploop/internal/goldentest"
	"deeploop/internal/kernel"
	"deeploop/internal/safetensors"
)

// Golden compares b with numbers recorded from the reference code: every file
// of the folder of golden numbers, and the copies in this package's testdata.
// Types are those b computes in; the loss is also checked in Float64 where
// that is among them.
func Golden(t *testing.T, b kernel.Backend, types ...kernel.DType) {
	own := filepath.Join(goldentest.Root(), "internal", "kerneltest", "testdata")
	for _, k := range []struct {
		kind  string
		check func(t *testing.T, g *safetensors.File)
	}{
		{"cross_entropy", func(t *testing.T, g *safetensors.File) {
			for _, typ := range types {
				if typ != kernel.BFloat16 {
					goldenLoss(t, b, g, typ)
				}
			}
		}},
		{"adam_atan2", func(t *testing.T, g *safetensors.File) { goldenAdam(t, b, g) }},
		{"sparse_signsgd", func(t *testing.T, g *safetensors.File) { goldenSignSGD(t, b, g) }},
	} {
		t.Run(k.kind, func(t *testing.T) {
			files := goldentest.Cases(t, own, k.kind+"*.safetensors")
			goldentest.Each(t, files, func(t *testing.T, path string) {
				g, err := safetensors.Open(path)
				require.NoError(t, err)
				defer g.Close()
				k.check(t, g)
			})
		})
	}
}

func floats(t *testing.T, g *safetensors.File, name string) []float32 {
	t.Helper()
	x, err := g.Float32s(name)
	require.NoError(t, err)
	return x
}

// near asks for |got-want| <= max(rel·|want|, abs) everywhere.
func near(t *testing.T, what string, got, want kernel.Buf, rel, abs float64) {
	t.Helper()
	require.Equal(t, want.Len(), got.Len(), what)
	for i := range want.Len() {
		g, w := got.At(i), want.At(i)
		if !(math.Abs(g-w) <= max(rel*math.Abs(w), abs)) {
			require.Failf(t, "differs from the reference", "%s[%d]: got %v, want %v", what, i, g, w)
		}
	}
}

// goldenLoss: 1e-12 relative or 1e-15 absolute in float64, 1e-6 relative in
// float32 (softmax gradients near zero: 1e-7 absolute, as float32 sums to 1).
func goldenLoss(t *testing.T, b kernel.Backend, g *safetensors.File, typ kernel.DType) {
	labels, err := g.Int32s("labels")
	require.NoError(t, err)
	rows := len(labels)
	v := g.Tensors["logits"].Shape[1]
	logits, dlogits := kernel.Alloc(typ, rows*v), kernel.Alloc(typ, rows*v)
	raw := floats(t, g, "logits")
	for i, x := range raw {
		logits.SetAt(i, float64(x))
	}
	loss, pred, ones := make([]float64, rows), make([]int32, rows), make([]float64, rows)
	for i := range ones {
		ones[i] = 1
	}

	wide := func(name string) kernel.Buf {
		x, err := g.Float64s(name)
		require.NoError(t, err)
		return kernel.F64(x)
	}
	b.CrossEntropy(loss, pred, logits, labels, v, kernel.Stablemax)
	b.CrossEntropyBackward(dlogits, logits, labels, ones, v, kernel.Stablemax)
	near(t, "stablemax loss", kernel.F64(loss), wide("stablemax_loss"), 1e-12, 1e-15)
	if typ == kernel.Float64 {
		near(t, "stablemax gradient", dlogits, wide("stablemax_grad_f64"), 1e-12, 1e-15)
	} else {
		near(t, "stablemax gradient", dlogits, kernel.F32(floats(t, g, "stablemax_grad_f32")), 1e-6, 1e-15)
	}
	for r := range rows {
		best := 0
		for i := range v {
			if raw[r*v+i] > raw[r*v+best] {
				best = i
			}
		}
		require.EqualValues(t, best, pred[r], "row %d", r)
	}

	b.CrossEntropy(loss, pred, logits, labels, v, kernel.Softmax)
	b.CrossEntropyBackward(dlogits, logits, labels, ones, v, kernel.Softmax)
	near(t, "softmax loss", kernel.F64(loss), kernel.F32(floats(t, g, "softmax_loss")), 1e-6, 3e-7)
	near(t, "softmax gradient", dlogits, kernel.F32(floats(t, g, "softmax_grad")), 1e-6, 1e-7)
}

// metadata parses a JSON value of the file's metadata.
func metadata(t *testing.T, g *safetensors.File, key string, dst any) {
	t.Helper()
	require.NoError(t, json.Unmarshal([]byte(g.Metadata[key]), dst), key)
}

// goldenAdam follows the recorded steps from the first weights on: weights to
// 1e-6 absolute, averages to 1e-6 relative, subnormal ones to half a unit of
// the last place.
func goldenAdam(t *testing.T, b kernel.Backend, g *safetensors.File) {
	var lr, betas []float64
	var decay float64
	metadata(t, g, "lr", &lr)
	metadata(t, g, "betas", &betas)
	metadata(t, g, "weight_decay", &decay)
	params := 0
	for _, n := range g.Names() {
		p, ok := strings.CutSuffix(n, ".init")
		if !ok {
			continue
		}
		params++
		w := kernel.F32(floats(t, g, n))
		m, v := kernel.Alloc(kernel.Float32, w.Len()), kernel.Alloc(kernel.Float32, w.Len())
		for i, rate := range lr {
			at := func(s string) kernel.Buf { return kernel.F32(floats(t, g, fmt.Sprintf("%s.%s%d", p, s, i+1))) }
			b.AdamATan2(w, at("grad"), m, v, kernel.AdamHyper{LR: rate, Beta1: betas[0], Beta2: betas[1], WeightDecay: decay, Step: i + 1})
			what := fmt.Sprintf("%s step %d ", p, i+1)
			near(t, what+"exp_avg", m, at("exp_avg"), 1e-6, 1e-45)
			near(t, what+"exp_avg_sq", v, at("exp_avg_sq"), 1e-6, 1e-45)
			near(t, what+"weights", w, at("after"), 0, 1e-6)
		}
	}
	require.Positive(t, params)
}

// goldenSignSGD sums the gradients of equal ids in float32 in batch order and
// updates the rows touched: one unit of the last place.
func goldenSignSGD(t *testing.T, b kernel.Backend, g *safetensors.File) {
	var lr []float64
	var decay float64
	metadata(t, g, "lr", &lr)
	metadata(t, g, "weight_decay", &decay)
	d := g.Tensors["weights.init"].Shape[1]
	w := kernel.F32(floats(t, g, "weights.init"))
	for i, rate := range lr {
		ids, err := g.Int32s(fmt.Sprintf("ids%d", i+1))
		require.NoError(t, err)
		grad := floats(t, g, fmt.Sprintf("grad%d", i+1))
		sums := map[int32][]float32{}
		for r, id := range ids {
			if sums[id] == nil {
				sums[id] = make([]float32, d)
			}
			for j := range d {
				sums[id][j] += grad[r*d+j]
			}
		}
		for id, s := range sums {
			b.SignSGD(w.Slice(int(id)*d, (int(id)+1)*d), kernel.F32(s), rate, decay)
		}
		near(t, fmt.Sprintf("weights after step %d", i+1), w, kernel.F32(floats(t, g, fmt.Sprintf("weights.after%d", i+1))), 1.2e-7, 1e-45)
	}
}
