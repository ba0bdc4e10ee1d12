// Package kerneltest holds the one list of cases that every kernel.Backend is
// tested with, in three modes: Agree (against kernel/ref in float64), Gradient
// (each backward against central differences) and Speed (GFLOP/s and GB/s).
package kerneltest

import (
	"hash/fnv"
	"math"
	"math/rand/v2"

	"deeploop/internal/kernel"
)

// Kind says which element type a tensor of a case has.
type Kind uint8

// Kinds of tensors: activations, masters, always float64, always int32.
const (
	Act Kind = iota
	Master
	Wide
	Int
)

// Role says what a call does with a tensor.
type Role uint8

// Roles. An Out tensor holds NaN before the call, so that a kernel which adds
// to it, or misses an element, is found out.
const (
	In Role = iota
	Out
	InOut
)

// Tensor describes one buffer of a case.
type Tensor struct {
	Name string
	Kind Kind
	Role Role
	Len  int
	// Fill draws one element of an In or InOut tensor; nil leaves zeros.
	Fill func(r *rand.Rand) float64
	// Exact asks for equal bits instead of the case's tolerance.
	Exact bool
}

// Tolerance bounds |got−want| by a multiple of |want| + rms(want) of the whole
// tensor, for float32 and bfloat16 activations.
type Tolerance struct{ F32, B16 float64 }

// Case is one call of one operation.
type Case struct {
	Op, Name string
	Tensors  []Tensor
	// Prepare fills inputs that depend on others (such as the log-sum-exp of a
	// backward call); kernel/ref runs it in float64.
	Prepare func(b kernel.Backend, v Values)
	Call    func(b kernel.Backend, v Values)
	Tol     Tolerance
	// OwnType compares with ref in the tested type, where rounding of the
	// results inside the call is part of the definition.
	OwnType bool
	// Flops is the work of one call, for Speed.
	Flops float64
	// MasterOnly cases have no activations, for Speed: one type is enough.
	MasterOnly bool
}

// Values holds the memory of a case's tensors.
type Values struct {
	Type   kernel.DType
	bufs   map[string]*guarded
	offset int // of every buffer, see newGuarded
}

// place adds a copy of b to the tensors.
func (v Values) place(name string, b kernel.Buf) {
	g := newGuarded(Master, b.Type(), b.Len(), v.offset)
	copy(g.buf.Bytes(), b.Bytes())
	v.bufs[name] = g
}

// free ends the life of the tensors.
func (v Values) free() {
	for _, g := range v.bufs {
		g.free()
	}
}

// Buf returns a tensor by name, the absent Buf where the case has none.
func (v Values) Buf(name string) kernel.Buf {
	if g := v.bufs[name]; g != nil {
		return g.buf
	}
	return kernel.Buf{}
}

// Ints returns an Int tensor.
func (v Values) Ints(name string) []int32 { return v.bufs[name].ints }

// Wide returns a Wide tensor.
func (v Values) Wide(name string) []float64 { return v.bufs[name].buf.Float64s() }

// Weight wraps a Master tensor as a weight.
func (v Values) Weight(name string, rows, cols int) *kernel.Weight {
	return &kernel.Weight{Data: v.Buf(name), Rows: rows, Cols: cols, Version: 1}
}

// typeOf returns the element type of a kind beside activations of type t.
func typeOf(k Kind, t kernel.DType) kernel.DType {
	switch k {
	case Act:
		return t
	case Master:
		return t.Master()
	}
	return kernel.Float64
}

// values allocates and fills the tensors of c. Every element is rounded to the
// type it has beside activations of type quant, so that a run in float64 and
// one in quant start from equal numbers. For offset see newGuarded.
func (c *Case) values(t, quant kernel.DType, offset int) Values {
	h := fnv.New64a()
	h.Write([]byte(c.Op + c.Name))
	r := rand.New(rand.NewPCG(h.Sum64(), 1))
	v := Values{Type: t, bufs: map[string]*guarded{}, offset: offset}
	for _, x := range c.Tensors {
		g := newGuarded(x.Kind, typeOf(x.Kind, t), x.Len, offset)
		v.bufs[x.Name] = g
		for i := range x.Len {
			switch {
			case x.Role == Out && x.Kind == Int:
				g.ints[i] = -77
			case x.Role == Out:
				g.buf.SetAt(i, math.NaN())
			case x.Fill != nil && x.Kind == Int:
				g.ints[i] = int32(x.Fill(r))
			case x.Fill != nil:
				g.buf.SetAt(i, round(x.Fill(r), typeOf(x.Kind, quant)))
			}
		}
	}
	return v
}

// round rounds f to type t.
func round(f float64, t kernel.DType) float64 {
	switch t {
	case kernel.Float32:
		return float64(float32(f))
	case kernel.BFloat16:
		return float64(kernel.ToBF16(float32(f)).Float32())
	}
	return f
}

// bytes returns the memory that one call must at least move.
func (c *Case) bytes(t kernel.DType) (n int64) {
	for _, x := range c.Tensors {
		size := typeOf(x.Kind, t).Size()
		if x.Kind == Int {
			size = 4
		}
		if x.Role == InOut {
			size *= 2
		}
		n += int64(size * x.Len)
	}
	return n
}

// normal returns a Fill of normal numbers with standard deviation std.
func normal(std float64) func(*rand.Rand) float64 {
	return func(r *rand.Rand) float64 { return std * r.NormFloat64() }
}

// uniform returns a Fill of numbers in [lo, hi).
func uniform(lo, hi float64) func(*rand.Rand) float64 {
	return func(r *rand.Rand) float64 { return lo + (hi-lo)*r.Float64() }
}

// below returns a Fill of whole numbers in [lo, hi).
func below(lo, hi int) func(*rand.Rand) float64 {
	return func(r *rand.Rand) float64 { return float64(lo + r.IntN(hi-lo)) }
}

// decades returns a Fill of both signs with magnitudes spread over powers of
// ten, and one zero in ten.
func decades(lo, hi float64) func(*rand.Rand) float64 {
	return func(r *rand.Rand) float64 {
		x := math.Pow(10, lo+(hi-lo)*r.Float64())
		switch r.IntN(20) {
		case 0, 1:
			return 0
		case 2, 3, 4, 5, 6, 7, 8, 9, 10:
			return -x
		}
		return x
	}
}
