// Package torchfile reads and writes what torch.save makes of a state dict: a
// zip archive with one pickle that describes tensors, and their numbers beside
// it.
//
//	ROOT/data.pkl    {name: tensor}, each a storage, an offset, shape, strides
//	ROOT/data/KEY    the raw numbers of one storage
//	ROOT/byteorder   little (newer versions)
//
// A pickle is a program. The machine that runs it here (pickle.go) knows the
// few operations that torch.save uses for tensors and can build nothing but
// them: dicts, lists, tuples, numbers, strings, and through five names tensors.
// Any other name or operation ends the reading and is named. It is our own in
// place of github.com/nlpodyssey/gopickle, which resolves any class, hangs on
// an empty file, takes whatever lengths a file claims, and holds all tensors in
// memory.
//
// Tensors are read when asked for, as streams. Files of old versions (before
// 1.6, no zip archives), TorchScript programs and whole modules are refused.
// Nothing is ever written to a name from an archive.
package torchfile

import (
	"fmt"
	"slices"
)

// Error is a file that is no state dict, or a damaged one.
type Error struct {
	Path string
	Err  error
}

func (e *Error) Error() string { return "read " + e.Path + ": " + e.Err.Error() }
func (e *Error) Unwrap() error { return e.Err }

// BadInput tells the command line that the input is at fault.
func (e *Error) BadInput() bool { return true }

// dtypes are the element types by the name of their storage class: the names
// safetensors has, and the size in bytes.
var dtypes = map[string]dtype{
	"FloatStorage": {"F32", 4}, "DoubleStorage": {"F64", 8}, "HalfStorage": {"F16", 2}, "BFloat16Storage": {"BF16", 2},
	"LongStorage": {"I64", 8}, "IntStorage": {"I32", 4}, "ShortStorage": {"I16", 2}, "CharStorage": {"I8", 1},
	"ByteStorage": {"U8", 1}, "BoolStorage": {"BOOL", 1},
}

type dtype struct {
	name string
	size int
}

// storage is a block of numbers that tensors are views of.
type storage struct {
	key  string
	kind dtype
	n    int // elements
}

// Tensor describes a tensor of a file.
type Tensor struct {
	DType string // F64 F32 F16 BF16 I64 I32 I16 I8 U8 BOOL
	Shape []int

	at     *storage
	offset int // elements
	stride []int
}

// Len returns the number of elements.
func (t Tensor) Len() int {
	n := 1
	for _, d := range t.Shape {
		n *= d
	}
	return n
}

// contiguous reports whether the elements lie in row-major order without gaps.
func (t Tensor) contiguous() bool {
	n := 1
	for i := len(t.Shape) - 1; i >= 0; i-- {
		if t.Shape[i] != 1 && t.stride[i] != n {
			return false
		}
		n *= t.Shape[i]
	}
	return true
}

// newTensor makes a view of a storage and checks that it stays inside.
func newTensor(s *storage, offset int, shape, stride []int) (Tensor, error) {
	t := Tensor{DType: s.kind.name, Shape: shape, at: s, offset: offset, stride: stride}
	if len(shape) != len(stride) || offset < 0 {
		return t, fmt.Errorf("a tensor has shape %v, strides %v and offset %d", shape, stride, offset)
	}
	if slices.Contains(shape, 0) && !slices.ContainsFunc(shape, func(d int) bool { return d < 0 }) {
		t.offset = 0
		return t, nil
	}
	n, last := 1, offset
	for i, d := range shape {
		if d < 0 || stride[i] < 0 || n > s.n/d {
			return t, fmt.Errorf("a tensor of shape %v and strides %v is larger than its storage of %d numbers", shape, stride, s.n)
		}
		n *= d
		if d > 1 && stride[i] > (s.n-last)/(d-1) {
			return t, fmt.Errorf("a tensor of shape %v and strides %v reaches over the end of its storage of %d numbers", shape, stride, s.n)
		}
		last += (d - 1) * stride[i]
	}
	if last >= s.n {
		return t, fmt.Errorf("a tensor of shape %v at offset %d reaches over the end of its storage of %d numbers", shape, offset, s.n)
	}
	return t, nil
}
