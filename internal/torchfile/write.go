package torchfile

import (
	"archive/zip"
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"time"
)

// Entry announces a tensor to write.
type Entry struct {
	Name  string
	DType string // as in Tensor
	Shape []int
}

// writeRoot is the folder inside the archive.
const writeRoot = "archive/"

// alignment of the numbers in the file, as torch.save has it: files can then
// be mapped.
const alignment = 64

// Write writes an OrderedDict of contiguous tensors as torch.save would;
// torch.load reads it, with weights_only too. data writes the raw
// little-endian numbers of the entry of that place. comment is the archive's,
// see Comment.
func Write(w io.Writer, comment string, entries []Entry, data func(i int, w io.Writer) error) error {
	described, err := pickle(entries)
	if err != nil {
		return err
	}
	out := &counter{w: w}
	z := zip.NewWriter(out)
	trailer := int64(0) // what the archive puts behind an entry when the next begins
	add := func(name string, fill func(io.Writer) error) error {
		if err := z.Flush(); err != nil { // so that out knows the place
			return err
		}
		// A fixed time: the same weights give the same bytes.
		h := &zip.FileHeader{Name: writeRoot + name, Method: zip.Store, Modified: time.Time{}}
		const header, tag = 30, 4
		pad := int(-(out.n + trailer + header + int64(len(h.Name)) + tag) & (alignment - 1))
		h.Extra = append([]byte{'F', 'B', byte(pad), byte(pad >> 8)}, bytes.Repeat([]byte{'Z'}, pad)...)
		part, err := z.CreateHeader(h)
		if err != nil {
			return err
		}
		c := &counter{w: part}
		err = fill(c)
		if trailer = 16; c.n >= math.MaxUint32 {
			trailer = 24
		}
		return err
	}
	text := func(b []byte) func(io.Writer) error {
		return func(w io.Writer) error { _, err := w.Write(b); return err }
	}
	if err := add("data.pkl", text(described)); err != nil {
		return err
	}
	if err := add("byteorder", text([]byte("little"))); err != nil {
		return err
	}
	for i, e := range entries {
		want := int64(Tensor{Shape: e.Shape}.Len() * storageOf(e.DType).size)
		err := add(fmt.Sprintf("data/%d", i), func(w io.Writer) error {
			c := &counter{w: w}
			if err := data(i, c); err != nil {
				return err
			}
			if c.n != want {
				return fmt.Errorf("torchfile: tensor %q got %d bytes, %s %v needs %d", e.Name, c.n, e.DType, e.Shape, want)
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	if err := add("version", text([]byte("3\n"))); err != nil {
		return err
	}
	if err := z.SetComment(comment); err != nil {
		return err
	}
	return z.Close()
}

// Comment returns the comment of an archive, "" where there is none. torch.save
// writes none.
func Comment(path string) string {
	z, err := zip.OpenReader(path)
	if err != nil {
		return ""
	}
	defer z.Close()
	return z.Comment
}

// storageOf returns a type with the name of its class in name; size is 0 for
// one that does not exist.
func storageOf(d string) dtype {
	for class, k := range dtypes {
		if k.name == d {
			return dtype{class, k.size}
		}
	}
	return dtype{}
}

// pickle describes the dict.
func pickle(entries []Entry) ([]byte, error) {
	var b bytes.Buffer
	number := func(n int) {
		if int(int32(n)) == n {
			b.WriteByte('J')
			b.Write(binary.LittleEndian.AppendUint32(nil, uint32(n)))
			return
		}
		b.Write([]byte{0x8a, 8})
		b.Write(binary.LittleEndian.AppendUint64(nil, uint64(n)))
	}
	numbers := func(ns []int) {
		b.WriteByte('(')
		for _, n := range ns {
			number(n)
		}
		b.WriteByte('t')
	}
	text := func(s string) {
		b.WriteByte('X')
		b.Write(binary.LittleEndian.AppendUint32(nil, uint32(len(s))))
		b.WriteString(s)
	}
	const empty = "ccollections\nOrderedDict\n)R"
	b.WriteString("\x80\x02" + empty + "(")
	seen := map[string]bool{}
	for i, e := range entries {
		class := storageOf(e.DType)
		if class.size == 0 || seen[e.Name] {
			return nil, fmt.Errorf("torchfile: tensor %q of type %q: no such type, or written twice", e.Name, e.DType)
		}
		seen[e.Name] = true
		stride, n := make([]int, len(e.Shape)), 1
		for k := len(e.Shape) - 1; k >= 0; k-- {
			stride[k] = n
			n *= e.Shape[k]
		}
		text(e.Name)
		b.WriteString("ctorch._utils\n_rebuild_tensor_v2\n((")
		text("storage")
		b.WriteString("ctorch\n" + class.name + "\n")
		text(fmt.Sprint(i))
		text("cpu")
		number(n)
		b.WriteString("tQ")
		number(0)
		numbers(e.Shape)
		numbers(stride)
		b.WriteString("\x89" + empty + "tR")
	}
	b.WriteString("u.")
	return b.Bytes(), nil
}

// counter counts the bytes that pass.
type counter struct {
	w io.Writer
	n int64
}

func (c *counter) Write(p []byte) (int, error) {
	n, err := c.w.Write(p)
	c.n += int64(n)
	return n, err
}
