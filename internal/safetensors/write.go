package safetensors

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
)

// Entry announces a tensor that will be written.
type Entry struct {
	Name  string
	DType string
	Shape []int
}

// Writer streams tensors in the announced order.
type Writer struct {
	w       io.Writer
	entries []Entry
	next    int
	left    int64 // bytes of the current tensor still to come
}

// NewWriter writes the header for entries, in this order, and returns a
// Writer whose Write calls take their raw bytes one after the other.
func NewWriter(w io.Writer, metadata map[string]string, entries []Entry) (*Writer, error) {
	type item struct {
		DType   string   `json:"dtype"`
		Shape   []int    `json:"shape"`
		Offsets [2]int64 `json:"data_offsets"`
	}
	m := make(map[string]any, len(entries)+1)
	if len(metadata) > 0 {
		m["__metadata__"] = metadata
	}
	var at int64
	for _, e := range entries {
		n, err := e.bytes()
		if err != nil {
			return nil, err
		}
		if _, dup := m[e.Name]; dup {
			return nil, fmt.Errorf("safetensors: two tensors named %q", e.Name)
		}
		shape := e.Shape
		if shape == nil {
			shape = []int{}
		}
		m[e.Name] = item{e.DType, shape, [2]int64{at, at + n}}
		at += n
	}
	js, err := json.Marshal(m) // keys sorted: same input, same bytes
	if err != nil {
		return nil, err
	}
	for len(js)%8 != 0 {
		js = append(js, ' ')
	}
	var raw [8]byte
	binary.LittleEndian.PutUint64(raw[:], uint64(len(js)))
	if _, err := w.Write(raw[:]); err != nil {
		return nil, err
	}
	if _, err := w.Write(js); err != nil {
		return nil, err
	}
	sw := &Writer{w: w, entries: entries, next: -1}
	return sw, sw.advance()
}

func (e Entry) bytes() (int64, error) {
	es, ok := dtypeSize[e.DType]
	if !ok {
		return 0, fmt.Errorf("safetensors: tensor %q has unknown dtype %q", e.Name, e.DType)
	}
	n := int64(es)
	for _, d := range e.Shape {
		n *= int64(d)
	}
	return n, nil
}

func (w *Writer) advance() error {
	for w.left == 0 && w.next < len(w.entries) {
		w.next++
		if w.next < len(w.entries) {
			n, err := w.entries[w.next].bytes()
			if err != nil {
				return err
			}
			w.left = n
		}
	}
	return nil
}

// Write appends raw little-endian bytes; a call may end inside a tensor but
// not reach over its end.
func (w *Writer) Write(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	if w.next >= len(w.entries) || int64(len(p)) > w.left {
		return 0, fmt.Errorf("safetensors: %d bytes written where %d are left of the tensor", len(p), w.left)
	}
	n, err := w.w.Write(p)
	w.left -= int64(n)
	if err == nil {
		err = w.advance()
	}
	return n, err
}

// Put appends a whole slice of fixed-size numbers.
func (w *Writer) Put(data any) error { return binary.Write(w, binary.LittleEndian, data) }

// Finish fails when announced bytes are missing.
func (w *Writer) Finish() error {
	if w.next < len(w.entries) {
		return fmt.Errorf("safetensors: tensor %q misses %d bytes", w.entries[w.next].Name, w.left)
	}
	return nil
}
