package predictions

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/klauspost/compress/zstd"

	"deeploop/internal/files"
	"deeploop/internal/safetensors"
)

// maxWindow bounds the memory a compressed file can ask for.
const maxWindow = 256 << 20

// File is a predictions file: the small tensors in memory, the tokens read as
// streams.
type File struct {
	Path         string
	Meta         Meta
	Rows, SeqLen int
	Identifiers  []int32   // [Rows]; 0 = pad row
	QHalt        []float32 // [Rows]
	TestIndex    []int32   // [Rows], or nil when the file does not say

	header *safetensors.Header // nil where the file is of PyTorch
	zstd   bool
	size   int64 // bytes of the plain file: header and tensors

	parts      []string        // files of PyTorch
	answers    string          // their tensor of answers: preds or logits
	tokenTypes map[string]bool // whether all have inputs and labels
}

// Open reads the header and the small tensors of a predictions file, of a
// plain safetensors file with the same tensors, of either in zstd, or of the
// reference's files (PyTorch's; of several processes any one stands for all). What
// does not hold together, or lacks preds, puzzle_identifiers or
// q_halt_logits, is an *Error.
func Open(path string) (*File, error) {
	f := &File{Path: path}
	if err := f.open(); err != nil {
		return nil, f.fail(err)
	}
	return f, nil
}

// fail wraps err in an Error, once, and says "cut short" for a stream that
// ended early.
func (f *File) fail(err error) error {
	var e *Error
	if errors.As(err, &e) {
		return e
	}
	if errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) {
		err = fmt.Errorf("the file is cut short or was never finished: %w; make it again with \"hrm eval\"", err)
	}
	return &Error{Path: f.Path, Err: err}
}

func (f *File) open() error {
	if isTorch(f.Path) {
		return f.openParts()
	}
	r, err := f.stream()
	if err != nil {
		return err
	}
	defer r.Close()
	size := int64(-1)
	if !f.zstd {
		st, err := os.Stat(f.Path)
		if err != nil {
			return err
		}
		size = st.Size()
	}
	h, err := safetensors.ReadHeader(r, size)
	if err != nil {
		return err
	}
	f.header, f.size = h, h.DataAt
	for _, in := range h.Tensors {
		f.size = max(f.size, h.DataAt+in.End)
	}
	if f.Meta, err = decodeMeta(h.Metadata); err != nil {
		return err
	}
	preds, err := f.info(tPreds, "U8", 2)
	if err != nil {
		return err
	}
	f.Rows, f.SeqLen = preds.Shape[0], preds.Shape[1]
	for _, name := range []string{tInputs, tLabels} {
		if in, ok := h.Tensors[name]; ok {
			if in.DType != "U8" || len(in.Shape) != 2 || in.Shape[0] != f.Rows || in.Shape[1] != f.SeqLen {
				return fmt.Errorf("tensor %q is %s %v, expected U8 [%d %d] as preds", name, in.DType, in.Shape, f.Rows, f.SeqLen)
			}
		}
	}
	ids, err := f.small(tIdentifiers, "I32")
	if err != nil {
		return err
	}
	f.Identifiers = decode[int32](ids)
	q, err := f.small(tQHalt, "F32")
	if err != nil {
		return err
	}
	f.QHalt = decode[float32](q)
	if _, ok := h.Tensors[tTestIndex]; ok {
		t, err := f.small(tTestIndex, "I32")
		if err != nil {
			return err
		}
		f.TestIndex = decode[int32](t)
	}
	return nil
}

// Kind recognises files that this package wrote, of any version, by their
// header; the rows may be damaged.
var Kind = files.Kind{Name: "predictions file of hrm eval", Is: func(path string) bool {
	f := &File{Path: path}
	r, err := f.stream()
	if err != nil {
		return false
	}
	defer r.Close()
	h, err := safetensors.ReadHeader(r, -1)
	return err == nil && strings.HasPrefix(h.Metadata["format"], formatName)
}}

// HasTokens reports whether the file holds inputs and labels.
func (f *File) HasTokens() bool {
	if f.header == nil {
		return f.tokenTypes[tInputs] && f.tokenTypes[tLabels]
	}
	_, a := f.header.Tensors[tInputs]
	_, b := f.header.Tensors[tLabels]
	return a && b
}

// info returns a tensor of the given type and number of dimensions.
func (f *File) info(name, dtype string, dims int) (safetensors.Info, error) {
	in, ok := f.header.Tensors[name]
	if !ok {
		return in, fmt.Errorf("there is no tensor %q, only %s: this is not a predictions file", name, strings.Join(f.header.Names(), ", "))
	}
	if in.DType != dtype || len(in.Shape) != dims {
		return in, fmt.Errorf("tensor %q is %s %v, expected %s with %d dimensions", name, in.DType, in.Shape, dtype, dims)
	}
	return in, nil
}

// small reads a tensor of one number a row.
func (f *File) small(name, dtype string) ([]byte, error) {
	in, err := f.info(name, dtype, 1)
	if err != nil {
		return nil, err
	}
	if in.Shape[0] != f.Rows {
		return nil, fmt.Errorf("tensor %q has %d rows, preds has %d", name, in.Shape[0], f.Rows)
	}
	r, err := f.at(in.Begin)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	// Grows with what is really there, so that a header that lies about its
	// size costs no memory.
	var b bytes.Buffer
	if _, err := io.CopyN(&b, r, in.End-in.Begin); err != nil {
		return nil, fmt.Errorf("tensor %q: %w", name, err)
	}
	return b.Bytes(), nil
}

func decode[T int32 | float32](raw []byte) []T {
	dst := make([]T, len(raw)/4)
	if _, err := binary.Decode(raw, binary.LittleEndian, dst); err != nil {
		panic("predictions: decode of a tensor of unknown size")
	}
	return dst
}

// stream opens the plain bytes from the start and finds out whether they are
// compressed.
func (f *File) stream() (io.ReadCloser, error) {
	info, err := os.Stat(f.Path) // first: to open a pipe would wait
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("it is not a regular file (%v)", info.Mode().Type())
	}
	file, err := os.Open(f.Path)
	if err != nil {
		return nil, err
	}
	var magic [4]byte
	if _, err := io.ReadFull(file, magic[:]); err != nil {
		file.Close()
		return nil, err
	}
	if _, err := file.Seek(0, io.SeekStart); err != nil {
		file.Close()
		return nil, err
	}
	f.zstd = magic == [4]byte{0x28, 0xb5, 0x2f, 0xfd}
	if !f.zstd {
		return file, nil
	}
	dec, err := zstd.NewReader(file, zstd.WithDecoderMaxWindow(maxWindow))
	if err != nil {
		file.Close()
		return nil, err
	}
	return &unzipped{dec, file}, nil
}

// unzipped is a decoded stream that closes its file.
type unzipped struct {
	*zstd.Decoder
	file *os.File
}

// Read says of the decoder's errors, which speak of its format, what they mean.
func (u *unzipped) Read(p []byte) (int, error) {
	n, err := u.Decoder.Read(p)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		err = fmt.Errorf("the file is damaged (%w); make it again with \"hrm eval\"", err)
	}
	return n, err
}

func (u *unzipped) Close() error {
	u.Decoder.Close()
	return u.file.Close()
}

// at opens the plain bytes at an offset behind the header.
func (f *File) at(begin int64) (io.ReadCloser, error) {
	r, err := f.stream()
	if err != nil {
		return nil, err
	}
	at := f.header.DataAt + begin
	if s, ok := r.(io.Seeker); ok {
		_, err = s.Seek(at, io.SeekStart)
	} else {
		_, err = io.CopyN(io.Discard, r, at)
	}
	if err != nil {
		r.Close()
		return nil, err
	}
	return r, nil
}
