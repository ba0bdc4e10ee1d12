package kernel

import (
	"fmt"
	"unsafe"
)

// BF16 is a bfloat16: the upper 16 bits of an IEEE float32.
type BF16 uint16

// Float32 widens exactly.
func (h BF16) Float32() float32 {
	u := uint32(h) << 16
	return *(*float32)(unsafe.Pointer(&u))
}

// ToBF16 rounds to nearest, ties to even; NaN stays NaN.
func ToBF16(f float32) BF16 {
	u := *(*uint32)(unsafe.Pointer(&f))
	if f != f {
		return BF16(u>>16 | 0x40)
	}
	return BF16((u + 0x7fff + (u>>16)&1) >> 16)
}

// DType is the element type of a Buf.
type DType uint8

// Element types. Float64 exists for gradient checks and only kernel/ref
// computes in it.
const (
	Float32 DType = iota
	Float64
	BFloat16
)

// Size returns the bytes of one element.
func (t DType) Size() int {
	switch t {
	case Float32:
		return 4
	case Float64:
		return 8
	}
	return 2
}

// Master returns the type of weights, gradients of weights and statistics
// that go with activations of type t: Float64 for Float64, else Float32.
func (t DType) Master() DType {
	if t == Float64 {
		return Float64
	}
	return Float32
}

func (t DType) String() string { return [...]string{"fp32", "fp64", "bf16"}[t] }

// Buf is a flat, typed block of memory: a slice whose element type is known
// at run time. The zero Buf is "absent". It keeps its memory alive.
type Buf struct {
	ptr unsafe.Pointer
	n   int
	t   DType
}

// Align is the alignment in bytes of memory from Alloc.
const Align = 64

// Alloc returns n zeroed elements aligned to Align bytes.
func Alloc(t DType, n int) Buf {
	if n == 0 {
		return Buf{t: t}
	}
	return Buf{ptr: aligned(n * t.Size()), n: n, t: t}
}

// F32 wraps s without copying.
func F32(s []float32) Buf { return Buf{unsafe.Pointer(unsafe.SliceData(s)), len(s), Float32} }

// F64 wraps s without copying.
func F64(s []float64) Buf { return Buf{unsafe.Pointer(unsafe.SliceData(s)), len(s), Float64} }

// B16 wraps s without copying.
func B16(s []BF16) Buf { return Buf{unsafe.Pointer(unsafe.SliceData(s)), len(s), BFloat16} }

// Len returns the number of elements.
func (b Buf) Len() int { return b.n }

// Type returns the element type.
func (b Buf) Type() DType { return b.t }

// Absent reports whether the Buf holds nothing.
func (b Buf) Absent() bool { return b.n == 0 }

// Ptr returns the address of the first element (nil when absent), for cgo.
func (b Buf) Ptr() unsafe.Pointer { return b.ptr }

func (b Buf) must(t DType) {
	if b.t != t && b.n != 0 {
		panic(fmt.Sprintf("kernel: buffer is %v, not %v", b.t, t))
	}
}

// Float32s views the elements; it panics on another type.
func (b Buf) Float32s() []float32 { b.must(Float32); return unsafe.Slice((*float32)(b.ptr), b.n) }

// Float64s views the elements; it panics on another type.
func (b Buf) Float64s() []float64 { b.must(Float64); return unsafe.Slice((*float64)(b.ptr), b.n) }

// BF16s views the elements; it panics on another type.
func (b Buf) BF16s() []BF16 { b.must(BFloat16); return unsafe.Slice((*BF16)(b.ptr), b.n) }

// Slice returns elements [i, j) without copying.
func (b Buf) Slice(i, j int) Buf {
	if i < 0 || j < i || j > b.n {
		panic(fmt.Sprintf("kernel: slice [%d:%d] of %d elements", i, j, b.n))
	}
	return Buf{unsafe.Add(b.ptr, i*b.t.Size()), j - i, b.t}
}

// Bytes views the memory of the elements.
func (b Buf) Bytes() []byte { return unsafe.Slice((*byte)(b.ptr), b.n*b.t.Size()) }

// At returns element i as a float64 (for tests and messages, not for loops).
func (b Buf) At(i int) float64 {
	switch b.t {
	case Float32:
		return float64(b.Float32s()[i])
	case Float64:
		return b.Float64s()[i]
	}
	return float64(b.BF16s()[i].Float32())
}

// SetAt stores v in element i, rounding to the element type.
func (b Buf) SetAt(i int, v float64) {
	switch b.t {
	case Float32:
		b.Float32s()[i] = float32(v)
	case Float64:
		b.Float64s()[i] = v
	default:
		b.BF16s()[i] = ToBF16(float32(v))
	}
}

// Reinterpret views the same memory as n elements of type t, which must fit.
func (b Buf) Reinterpret(t DType, n int) Buf {
	if n*t.Size() > b.n*b.t.Size() {
		panic("kernel: reinterpreted buffer does not fit")
	}
	return Buf{b.ptr, n, t}
}
