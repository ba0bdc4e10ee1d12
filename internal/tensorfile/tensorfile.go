// Package tensorfile reads the two kinds of file that named tensors of other
// programs come in: safetensors, and what torch.save makes of a state dict
// (package torchfile).
package tensorfile

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"os"

	"deeploop/internal/kernel"
	"deeploop/internal/safetensors"
	"deeploop/internal/torchfile"
)

// Info describes a tensor. DType is one of safetensors' names: F64 F32 F16
// BF16 I64 I32 I16 I8 U8 BOOL.
type Info struct {
	DType string
	Shape []int
}

// Len returns the number of elements.
func (i Info) Len() int {
	n := 1
	for _, d := range i.Shape {
		n *= d
	}
	return n
}

// File is an open file whose tensors are read on request.
type File struct {
	Path string
	// Format is "PyTorch" or "safetensors".
	Format string

	names  []string
	infos  map[string]Info
	reader func(name string) (io.ReadCloser, error)
	close  func() error
}

// Error is a file that cannot be read as one of tensors.
type Error struct {
	Path string
	Err  error
}

func (e *Error) Error() string { return "read " + e.Path + ": " + e.Err.Error() }
func (e *Error) Unwrap() error { return e.Err }

// BadInput tells the command line that the input is at fault.
func (e *Error) BadInput() bool { return true }

// Open finds out which kind of file it is and reads the names, types and
// shapes. What is neither is an error that says what was found.
func Open(path string) (*File, error) {
	head, err := head(path)
	if err != nil {
		return nil, &Error{path, err}
	}
	if isSafetensors(head) {
		return openSafetensors(path)
	}
	t, err := torchfile.Open(path)
	if err != nil {
		return nil, err
	}
	f := &File{Path: path, Format: "PyTorch", names: t.Names(), infos: map[string]Info{}, reader: t.Reader, close: t.Close}
	for _, n := range f.names {
		in, _ := t.Tensor(n)
		f.infos[n] = Info{in.DType, in.Shape}
	}
	return f, nil
}

// head returns the first bytes of a regular file.
func head(path string) ([]byte, error) {
	info, err := os.Stat(path) // first: to open a pipe would wait
	if err == nil && !info.Mode().IsRegular() {
		return nil, fmt.Errorf("it is no regular file (%v)", info.Mode().Type())
	}
	var f *os.File
	if err == nil {
		f, err = os.Open(path)
	}
	if err != nil {
		var p *os.PathError
		if errors.As(err, &p) {
			err = p.Err
		}
		return nil, err
	}
	defer f.Close()
	b := make([]byte, 9)
	n, _ := io.ReadFull(f, b) // what is shorter is of neither kind
	return b[:n], nil
}

// isSafetensors looks for the length of a header and its first brace.
func isSafetensors(head []byte) bool {
	return len(head) == 9 && head[8] == '{' && binary.LittleEndian.Uint64(head) <= safetensors.MaxHeader
}

func openSafetensors(path string) (*File, error) {
	s, err := safetensors.Open(path)
	if err != nil {
		return nil, &Error{path, err}
	}
	f := &File{Path: path, Format: "safetensors", names: s.Names(), infos: map[string]Info{}, close: s.Close}
	for _, n := range f.names {
		f.infos[n] = Info{s.Tensors[n].DType, s.Tensors[n].Shape}
	}
	f.reader = func(name string) (io.ReadCloser, error) {
		r, _, err := s.Reader(name)
		if err != nil {
			return nil, err
		}
		return io.NopCloser(r), nil
	}
	return f, nil
}

// Close closes the file.
func (f *File) Close() error { return f.close() }

// Names lists the tensors in the order of the file.
func (f *File) Names() []string { return f.names }

// Info describes a tensor; ok is false where there is none of that name.
func (f *File) Info(name string) (info Info, ok bool) {
	info, ok = f.infos[name]
	return info, ok
}

// Reader returns the numbers of a tensor, raw, little-endian and in row-major
// order.
func (f *File) Reader(name string) (io.ReadCloser, error) { return f.reader(name) }

// chunk is how many numbers are converted at a time.
const chunk = 1 << 16

// Floats reads a tensor of any floating type and calls use with its numbers,
// a part at a time, in order. The slice is used again.
func (f *File) Floats(name string, use func(part []float32)) error {
	size, convert, _ := FloatType(f.infos[name].DType)
	return each(f, name, "numbers of type F32, BF16, F16 or F64", size, convert, use)
}

// Ints reads a tensor of whole numbers like Floats.
func (f *File) Ints(name string, use func(part []int64)) error {
	size, convert, _ := IntType(f.infos[name].DType)
	return each(f, name, "whole numbers", size, convert, use)
}

func each[T any](f *File, name, want string, size int, convert func([]byte) T, use func([]T)) error {
	in, ok := f.infos[name]
	if !ok {
		return &Error{f.Path, fmt.Errorf("there is no tensor %q", name)}
	}
	if convert == nil {
		return &Error{f.Path, fmt.Errorf("tensor %q is %s, expected %s", name, in.DType, want)}
	}
	r, err := f.reader(name)
	if err != nil {
		return err
	}
	defer r.Close()
	left := in.Len()
	raw, out := make([]byte, min(left, chunk)*size), make([]T, min(left, chunk))
	for left > 0 {
		n := min(left, chunk)
		if _, err := io.ReadFull(r, raw[:n*size]); err != nil {
			return &Error{f.Path, fmt.Errorf("tensor %s: %w", name, err)}
		}
		for i := range n {
			out[i] = convert(raw[i*size:])
		}
		use(out[:n])
		left -= n
	}
	return nil
}

// FloatType returns the size of a floating type and how to read one number.
func FloatType(dtype string) (size int, number func([]byte) float32, ok bool) {
	switch dtype {
	case "F32":
		return 4, func(b []byte) float32 { return math.Float32frombits(binary.LittleEndian.Uint32(b)) }, true
	case "BF16":
		return 2, func(b []byte) float32 { return kernel.BF16(binary.LittleEndian.Uint16(b)).Float32() }, true
	case "F16":
		return 2, func(b []byte) float32 { return half(binary.LittleEndian.Uint16(b)) }, true
	case "F64":
		return 8, func(b []byte) float32 { return float32(math.Float64frombits(binary.LittleEndian.Uint64(b))) }, true
	}
	return 0, nil, false
}

// half is an IEEE half-precision number.
func half(h uint16) float32 {
	sign, e, m := uint32(h>>15)<<31, int(h>>10&31), uint32(h&0x3ff)
	switch e {
	case 0:
		v := float32(math.Ldexp(float64(m), -24))
		return math.Float32frombits(sign | math.Float32bits(v))
	case 31:
		return math.Float32frombits(sign | 0xff<<23 | m<<13)
	}
	return math.Float32frombits(sign | uint32(e+112)<<23 | m<<13)
}

// IntType returns the size of a type of whole numbers and how to read one.
func IntType(dtype string) (size int, number func([]byte) int64, ok bool) {
	switch dtype {
	case "I64":
		return 8, func(b []byte) int64 { return int64(binary.LittleEndian.Uint64(b)) }, true
	case "I32":
		return 4, func(b []byte) int64 { return int64(int32(binary.LittleEndian.Uint32(b))) }, true
	case "I16":
		return 2, func(b []byte) int64 { return int64(int16(binary.LittleEndian.Uint16(b))) }, true
	case "I8":
		return 1, func(b []byte) int64 { return int64(int8(b[0])) }, true
	case "U8":
		return 1, func(b []byte) int64 { return int64(b[0]) }, true
	}
	return 0, nil, false
}
