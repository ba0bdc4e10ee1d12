package torchfile

import (
	"bytes"
	"fmt"
	"io"
)

// Reader returns the numbers of a tensor as raw little-endian bytes in
// row-major order. A tensor that lies so in the file is streamed; of another
// view (a transposed one, say) its storage is read into memory. Damage that
// the archive's checksum shows is an error of the last Read of a tensor that
// is a whole storage; that Read gives no bytes, so io.ReadFull fails too.
func (f *File) Reader(name string) (io.ReadCloser, error) {
	t, ok := f.tensors[name]
	if !ok {
		return nil, &Error{f.Path, fmt.Errorf("there is no tensor %q", name)}
	}
	r, err := f.reader(t)
	if err != nil {
		return nil, &Error{f.Path, fmt.Errorf("tensor %s: %w", name, err)}
	}
	return r, nil
}

func (f *File) reader(t Tensor) (io.ReadCloser, error) {
	e := f.data[t.at.key]
	r, err := e.Open()
	if err != nil {
		return nil, damaged(e, err)
	}
	size := t.at.kind.size
	if t.contiguous() {
		if _, err := io.CopyN(io.Discard, r, int64(t.offset*size)); err != nil {
			r.Close()
			return nil, damaged(e, err)
		}
		return &view{r: r, left: int64(t.Len() * size), whole: t.offset == 0 && t.Len() == t.at.n, fail: func(err error) error { return damaged(e, err) }}, nil
	}
	defer r.Close()
	var all bytes.Buffer // grows with what is really there
	if _, err := io.Copy(&all, r); err != nil {
		return nil, damaged(e, err)
	}
	return io.NopCloser(bytes.NewReader(gather(t, all.Bytes()))), nil
}

// view is the part of a storage that a tensor is.
type view struct {
	r     io.ReadCloser
	left  int64
	whole bool // what follows is the end, which checks the sum
	fail  func(error) error
}

func (v *view) Read(p []byte) (int, error) {
	if v.left == 0 {
		return 0, io.EOF
	}
	n, err := io.ReadFull(v.r, p[:min(int64(len(p)), v.left)])
	v.left -= int64(n)
	if err == nil && v.left == 0 && v.whole {
		var one [1]byte
		if _, end := v.r.Read(one[:]); end != io.EOF {
			err = end
		}
	}
	if err != nil {
		return 0, v.fail(err)
	}
	return n, nil
}

func (v *view) Close() error { return v.r.Close() }

// gather copies the elements of a view in row-major order.
func gather(t Tensor, from []byte) []byte {
	size := t.at.kind.size
	out := make([]byte, 0, t.Len()*size)
	if t.Len() == 0 {
		return out
	}
	index := make([]int, len(t.Shape))
	at := t.offset
	for {
		out = append(out, from[at*size:(at+1)*size]...)
		i := len(index) - 1
		for ; i >= 0; i-- {
			index[i]++
			at += t.stride[i]
			if index[i] < t.Shape[i] {
				break
			}
			at -= index[i] * t.stride[i]
			index[i] = 0
		}
		if i < 0 {
			return out
		}
	}
}
