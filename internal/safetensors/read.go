// Package safetensors reads and writes the safetensors format: an 8-byte
// little-endian header length, a JSON header, then raw little-endian
// row-major tensors.
package safetensors

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"sort"
)

// MaxHeader bounds the JSON header, so that a broken file cannot ask for
// unbounded memory.
const MaxHeader = 100 << 20

// Info describes one tensor of a file. Begin and End are offsets in bytes
// behind the header.
type Info struct {
	DType      string // F64 F32 BF16 I64 I32 U64 U32 U8 BOOL ...
	Shape      []int
	Begin, End int64
}

// Len returns the number of elements.
func (i Info) Len() int {
	n := 1
	for _, d := range i.Shape {
		n *= d
	}
	return n
}

var dtypeSize = map[string]int{
	"F64": 8, "I64": 8, "U64": 8, "F32": 4, "I32": 4, "U32": 4,
	"BF16": 2, "F16": 2, "I16": 2, "U16": 2, "I8": 1, "U8": 1, "BOOL": 1,
}

// Header is the parsed head of a file.
type Header struct {
	Metadata map[string]string
	Tensors  map[string]Info
	DataAt   int64 // file offset of the first data byte
}

// Names returns the tensor names in file order.
func (h *Header) Names() []string {
	names := make([]string, 0, len(h.Tensors))
	for n := range h.Tensors {
		names = append(names, n)
	}
	sort.Slice(names, func(i, j int) bool {
		a, b := h.Tensors[names[i]], h.Tensors[names[j]]
		if a.Begin != b.Begin {
			return a.Begin < b.Begin
		}
		return names[i] < names[j]
	})
	return names
}

// ReadHeader parses the head of a safetensors stream of the given total size
// (size < 0: unknown, as in a compressed stream) and checks that offsets,
// shapes and sizes agree.
func ReadHeader(r io.Reader, size int64) (*Header, error) {
	var raw [8]byte
	if _, err := io.ReadFull(r, raw[:]); err != nil {
		return nil, fmt.Errorf("read safetensors header length: %w", err)
	}
	n := binary.LittleEndian.Uint64(raw[:])
	if n > MaxHeader || (size >= 0 && int64(n) > size-8) {
		return nil, fmt.Errorf("safetensors header is said to be %d bytes long, more than the file or %d", n, MaxHeader)
	}
	js := make([]byte, n)
	if _, err := io.ReadFull(r, js); err != nil {
		return nil, fmt.Errorf("read safetensors header: %w", err)
	}
	var m map[string]json.RawMessage
	if err := json.Unmarshal(js, &m); err != nil {
		return nil, fmt.Errorf("parse safetensors header: %w", err)
	}
	h := &Header{Tensors: make(map[string]Info, len(m)), DataAt: 8 + int64(n)}
	for name, v := range m {
		if name == "__metadata__" {
			if err := json.Unmarshal(v, &h.Metadata); err != nil {
				return nil, fmt.Errorf("parse safetensors metadata: %w", err)
			}
			continue
		}
		var t struct {
			DType   string   `json:"dtype"`
			Shape   []int    `json:"shape"`
			Offsets [2]int64 `json:"data_offsets"`
		}
		if err := json.Unmarshal(v, &t); err != nil {
			return nil, fmt.Errorf("parse safetensors entry %q: %w", name, err)
		}
		in := Info{DType: t.DType, Shape: t.Shape, Begin: t.Offsets[0], End: t.Offsets[1]}
		es, ok := dtypeSize[in.DType]
		if !ok {
			return nil, fmt.Errorf("tensor %q has unknown dtype %q", name, in.DType)
		}
		want := int64(es)
		for _, d := range in.Shape {
			if d < 0 || (d > 0 && want > math.MaxInt64/int64(d)) {
				return nil, fmt.Errorf("tensor %q has shape %v", name, in.Shape)
			}
			want *= int64(d)
		}
		if in.Begin < 0 || in.End-in.Begin != want || (size >= 0 && h.DataAt+in.End > size) {
			return nil, fmt.Errorf("tensor %q of shape %v and dtype %s needs %d bytes, its offsets are [%d, %d] in a file of %d bytes",
				name, in.Shape, in.DType, want, in.Begin, in.End, size)
		}
		h.Tensors[name] = in
	}
	return h, nil
}

// File is an open safetensors file whose tensors are read on request.
type File struct {
	Header
	f *os.File
}

// Open parses the header of a file.
func Open(path string) (*File, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	st, err := f.Stat()
	if err != nil {
		f.Close()
		return nil, err
	}
	h, err := ReadHeader(f, st.Size())
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return &File{Header: *h, f: f}, nil
}

// Close closes the file.
func (f *File) Close() error { return f.f.Close() }

// Has reports whether the tensor exists.
func (f *File) Has(name string) bool { _, ok := f.Tensors[name]; return ok }

// Reader returns a reader over the raw bytes of one tensor.
func (f *File) Reader(name string) (*io.SectionReader, Info, error) {
	in, ok := f.Tensors[name]
	if !ok {
		return nil, in, fmt.Errorf("%s: no tensor %q", f.f.Name(), name)
	}
	return io.NewSectionReader(f.f, f.DataAt+in.Begin, in.End-in.Begin), in, nil
}

// ReadInto decodes a tensor into dst, a []float32, []float64, []int32,
// []int64, []uint32, []uint64, []uint16 or []uint8 of the tensor's own type
// and length.
func (f *File) ReadInto(name string, dst any) error {
	r, in, err := f.Reader(name)
	if err != nil {
		return err
	}
	want := map[string]bool{}
	n := 0
	switch d := dst.(type) {
	case []float32:
		want["F32"], n = true, len(d)
	case []float64:
		want["F64"], n = true, len(d)
	case []int32:
		want["I32"], n = true, len(d)
	case []int64:
		want["I64"], n = true, len(d)
	case []uint32:
		want["U32"], n = true, len(d)
	case []uint64:
		want["U64"], n = true, len(d)
	case []uint16:
		want["BF16"], want["U16"], want["F16"], n = true, true, true, len(d)
	case []uint8:
		want["U8"], want["BOOL"], n = true, true, len(d)
	default:
		return fmt.Errorf("safetensors: cannot read into %T", dst)
	}
	if !want[in.DType] || n != in.Len() {
		return fmt.Errorf("%s: tensor %q is %s %v, wanted %d elements of %T", f.f.Name(), name, in.DType, in.Shape, n, dst)
	}
	return binary.Read(r, binary.LittleEndian, dst)
}

// Float32s reads an F32 tensor whole.
func (f *File) Float32s(name string) ([]float32, error) { return read[float32](f, name) }

// Float64s reads an F64 tensor whole.
func (f *File) Float64s(name string) ([]float64, error) { return read[float64](f, name) }

// Int32s reads an I32 tensor whole.
func (f *File) Int32s(name string) ([]int32, error) { return read[int32](f, name) }

// Uint32s reads a U32 tensor whole.
func (f *File) Uint32s(name string) ([]uint32, error) { return read[uint32](f, name) }

// Uint64s reads a U64 tensor whole.
func (f *File) Uint64s(name string) ([]uint64, error) { return read[uint64](f, name) }

// Uint8s reads a U8 or BOOL tensor whole.
func (f *File) Uint8s(name string) ([]uint8, error) { return read[uint8](f, name) }

func read[T any](f *File, name string) ([]T, error) {
	in, ok := f.Tensors[name]
	if !ok {
		return nil, fmt.Errorf("%s: no tensor %q", f.f.Name(), name)
	}
	dst := make([]T, in.Len())
	return dst, f.ReadInto(name, dst)
}
