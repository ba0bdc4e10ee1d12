package checkpoint

import (
	"encoding/binary"
	"fmt"
	"unsafe"

	"deeploop/internal/kernel"
	"deeploop/internal/safetensors"
)

// Groups of state. Each group of tensors is one file, so that evaluation reads
// only what it needs and a change of data can leave the data's groups behind.
const (
	Weights        = "weights"         // raw weights
	EMA            = "ema"             // averaged weights
	Optimizer      = "optimizer"       // moments, step counts
	TaskEmbeddings = "task_embeddings" // the table with one row per dataset identifier
	Carry          = "carry"           // recurrent state, rows in the batch, loader position
	Streams        = "streams"         // random streams
)

// Set lists, by reference, all state that a checkpoint holds. Nothing is
// copied when a Set is made: saving reads and loading writes the memory
// itself.
type Set struct {
	tensors []tensor
	values  []value
	names   map[string]bool
}

type tensor struct {
	group string
	safetensors.Entry
	data []byte
}

type value struct {
	group, name string
	ptr         any
}

// Tensor adds a tensor. data is a kernel.Buf or a []float32, []float64,
// []int32, []int64, []uint64, []uint8 or []bool of as many elements as shape
// says; it panics otherwise, and on a name that its group has already.
func (s *Set) Tensor(group, name string, shape []int, data any) {
	s.claim(group, name)
	raw, dtype := rawBytes(data)
	e := safetensors.Entry{Name: name, DType: dtype, Shape: append([]int{}, shape...)}
	n := elementSize[dtype]
	for _, d := range shape {
		n *= d
	}
	if n != len(raw) {
		panic(fmt.Sprintf("checkpoint: tensor %s/%s has %d bytes, shape %v of %s needs %d", group, name, len(raw), shape, dtype, n))
	}
	s.tensors = append(s.tensors, tensor{group: group, Entry: e, data: raw})
}

// Value adds anything small that encoding/json writes and reads exactly
// (numbers, strings, structs, a *rng.Stream). ptr points to it. All values are
// part of the digest, so paths and times do not belong here.
func (s *Set) Value(group, name string, ptr any) {
	s.claim(group, name)
	s.values = append(s.values, value{group, name, ptr})
}

func (s *Set) claim(group, name string) {
	if s.names == nil {
		s.names = map[string]bool{}
	}
	key := group + "/" + name
	if s.names[key] {
		panic("checkpoint: two entries called " + key)
	}
	s.names[key] = true
}

// bytes is the size of all tensors.
func (s *Set) bytes() int64 {
	n := int64(0)
	for _, t := range s.tensors {
		n += int64(len(t.data))
	}
	return n
}

// groups returns the groups that have tensors, in first-seen order.
func (s *Set) groups() []string {
	var out []string
	seen := map[string]bool{}
	for _, t := range s.tensors {
		if !seen[t.group] {
			seen[t.group] = true
			out = append(out, t.group)
		}
	}
	return out
}

var elementSize = map[string]int{"F64": 8, "I64": 8, "U64": 8, "F32": 4, "I32": 4, "BF16": 2, "U8": 1, "BOOL": 1}

func rawBytes(data any) ([]byte, string) {
	if binary.NativeEndian.Uint16([]byte{1, 0}) != 1 {
		panic("checkpoint: big-endian machines are not supported")
	}
	switch d := data.(type) {
	case kernel.Buf:
		return d.Bytes(), map[kernel.DType]string{kernel.Float32: "F32", kernel.Float64: "F64", kernel.BFloat16: "BF16"}[d.Type()]
	case []float32:
		return view(d), "F32"
	case []float64:
		return view(d), "F64"
	case []int32:
		return view(d), "I32"
	case []int64:
		return view(d), "I64"
	case []uint64:
		return view(d), "U64"
	case []uint8:
		return d, "U8"
	case []bool:
		return view(d), "BOOL"
	}
	panic(fmt.Sprintf("checkpoint: a tensor cannot be a %T", data))
}

func view[T any](s []T) []byte {
	var zero T
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(s))), len(s)*int(unsafe.Sizeof(zero)))
}
