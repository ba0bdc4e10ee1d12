package kerneltest

import (
	"bytes"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"deeploop/internal/kernel"
	"deeploop/internal/kernel/ref"
)

// Open makes the backend under test with a number of threads.
type Open func(threads int) kernel.Backend

// variants are the thread counts and alignments each case runs with.
var variants = []struct{ threads, offset int }{{1, 0}, {3, 1}, {2, 5}, {2, atEnd}}

// Agree runs every case with activations of each given type and compares with
// kernel/ref. It also checks that no call writes outside its destinations or
// changes a source, and that a repeated call gives the same bytes.
func Agree(t *testing.T, open Open, types ...kernel.DType) {
	AgreeOn(t, open, Cases(), types...)
}

// AgreeOn is Agree with some cases.
func AgreeOn(t *testing.T, open Open, cases []Case, types ...kernel.DType) {
	backends := make([]kernel.Backend, len(variants))
	for i, v := range variants {
		backends[i] = open(v.threads)
		defer backends[i].Close()
	}
	for _, typ := range types {
		for _, c := range cases {
			t.Run(typ.String()+"/"+c.Op+"/"+c.Name, func(t *testing.T) {
				want := c.reference(typ)
				for i, v := range variants {
					c.agree(t, backends[i], typ, v.offset, want)
				}
			})
		}
	}
}

// inputs returns the case's tensors with prepared inputs. Preparation runs in
// float64; the results are then rounded to the tested type.
func (c *Case) inputs(t, quant kernel.DType, offset int) Values {
	v := c.values(t, quant, offset)
	if c.Prepare == nil {
		return v
	}
	wide := c.values(kernel.Float64, quant, 0)
	c.Prepare(ref.New(1), wide)
	for _, x := range c.Tensors {
		if x.Role == Out || x.Kind == Int {
			continue
		}
		from, to := wide.Buf(x.Name), v.Buf(x.Name)
		for i := range from.Len() {
			to.SetAt(i, round(from.At(i), typeOf(x.Kind, quant)))
		}
	}
	return v
}

// results of kernel/ref, kept because several backends of one process ask.
var results = map[string]Values{}

func (c *Case) reference(typ kernel.DType) Values {
	key := typ.String() + c.Op + "/" + c.Name
	if v, ok := results[key]; ok {
		return v
	}
	if len(results) > 1000 {
		clear(results)
	}
	t := kernel.Float64
	if c.OwnType {
		t = typ
	}
	v := c.inputs(t, typ, 0)
	c.Call(ref.New(2), v)
	results[key] = v
	return v
}

func (c *Case) agree(t *testing.T, b kernel.Backend, typ kernel.DType, offset int, want Values) {
	v, before := c.inputs(typ, typ, offset), map[string][]byte{}
	defer v.free()
	for _, x := range c.Tensors {
		if x.Role == In {
			before[x.Name] = bytes.Clone(v.bufs[x.Name].bytes())
		}
	}
	c.Call(b, v)
	tol := c.Tol.F32
	if typ == kernel.BFloat16 {
		tol = c.Tol.B16
	} else if typ == kernel.Float64 {
		tol = 1e-12
	}
	for _, x := range c.Tensors {
		g := v.bufs[x.Name]
		require.True(t, g.intact(), "%s: memory beside it was written (%d threads, offset %d)", x.Name, b.Threads(), offset)
		switch {
		case x.Role == In:
			require.True(t, bytes.Equal(before[x.Name], g.bytes()), "%s: a source was changed", x.Name)
		case x.Kind == Int:
			require.Equal(t, want.Ints(x.Name), g.ints, x.Name)
		case x.Exact:
			compare(t, x, g.buf, want.Buf(x.Name), 0)
		default:
			compare(t, x, g.buf, want.Buf(x.Name), tol)
		}
	}
	if b.Threads() != variants[1].threads {
		return
	}
	again := c.inputs(typ, typ, offset)
	defer again.free()
	c.Call(b, again)
	for _, x := range c.Tensors {
		require.True(t, bytes.Equal(v.bufs[x.Name].bytes(), again.bufs[x.Name].bytes()), "%s: a second call gave other bytes", x.Name)
	}
}

func compare(t *testing.T, x Tensor, got, want kernel.Buf, tol float64) {
	t.Helper()
	typ := got.Type()
	scale := rms(want)
	worst, at := 0.0, 0
	for i := range want.Len() {
		g, w := got.At(i), want.At(i)
		if g == w || math.IsNaN(g) && math.IsNaN(w) || tol == 0 && g == round(w, typ) {
			continue
		}
		e := math.Abs(g-w) / (math.Abs(w) + scale)
		if !(e <= worst) { // NaN counts
			worst, at = e, i
		}
		if math.IsNaN(e) {
			break
		}
	}
	if !(worst <= tol) {
		require.Failf(t, "results differ", "%s[%d] of %d: got %v, want %v (rms %.3g): off by %.3g, allowed %.3g",
			x.Name, at, want.Len(), got.At(at), want.At(at), scale, worst, tol)
	}
}
