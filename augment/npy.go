package augment

import (
	"encoding/binary"
	"fmt"
	"io"
	"strings"

	"codeberg.org/sbinet/npyio/npy"
)

// npyHeader returns a header as numpy 1.x writes it (format version 1.0,
// padded to 64 bytes), so that whole files equal the reference's.
func npyHeader(dtype string, shape ...int) []byte {
	dims := make([]string, len(shape))
	for i, d := range shape {
		dims[i] = fmt.Sprint(d)
	}
	list := strings.Join(dims, ", ")
	if len(dims) == 1 {
		list += ","
	}
	dict := fmt.Sprintf("{'descr': '%s', 'fortran_order': False, 'shape': (%s), }", dtype, list)
	const fixed = 6 + 2 + 2 // magic, version, length
	pad := 64 - (fixed+len(dict)+1)%64
	if pad == 64 {
		pad = 0
	}
	dict += strings.Repeat(" ", pad) + "\n"
	b := append(make([]byte, 0, fixed+len(dict)), "\x93NUMPY\x01\x00"...)
	b = binary.LittleEndian.AppendUint16(b, uint16(len(dict)))
	return append(b, dict...)
}

// npyInt32 returns a whole .npy file of int32.
func npyInt32(values []int32) []byte {
	b := npyHeader("<i4", len(values))
	for _, v := range values {
		b = binary.LittleEndian.AppendUint32(b, uint32(v))
	}
	return b
}

// npyInfo is the parsed head of a .npy file.
type npyInfo struct {
	dtype  string
	shape  []int
	dataAt int64
}

// maxNpyHeader bounds the head, so that a broken file cannot ask for memory.
const maxNpyHeader = 1 << 16

// readNpyInfo parses the head of a .npy stream.
func readNpyInfo(r io.Reader) (info npyInfo, err error) {
	var head [12]byte
	if _, err := io.ReadFull(r, head[:10]); err != nil {
		return info, fmt.Errorf("read .npy header: %w", err)
	}
	if string(head[:6]) != "\x93NUMPY" || head[6] < 1 || head[6] > 2 {
		return info, fmt.Errorf("read .npy header: it starts with %q, expected \\x93NUMPY and version 1 or 2", head[:8])
	}
	n, used := int(binary.LittleEndian.Uint16(head[8:])), 10
	if head[6] == 2 {
		if _, err := io.ReadFull(r, head[10:]); err != nil {
			return info, fmt.Errorf("read .npy header: %w", err)
		}
		n, used = int(binary.LittleEndian.Uint32(head[8:])), 12
	}
	if n > maxNpyHeader {
		return info, fmt.Errorf("read .npy header: it is said to be %d bytes long, more than %d", n, maxNpyHeader)
	}
	dict := make([]byte, n)
	if _, err := io.ReadFull(r, dict); err != nil {
		return info, fmt.Errorf("read .npy header: %w", err)
	}
	// The library parses the dictionary and panics on some broken ones.
	defer func() {
		if recover() != nil {
			err = fmt.Errorf("read .npy header: cannot parse %.80q", dict)
		}
	}()
	parsed, err := npy.NewReader(io.MultiReader(strings.NewReader(string(head[:used])), strings.NewReader(string(dict))))
	if err != nil {
		return info, fmt.Errorf("read .npy header: %w", err)
	}
	d := parsed.Header.Descr
	if d.Fortran {
		return info, fmt.Errorf("read .npy header: the array is in Fortran order, expected C order")
	}
	return npyInfo{dtype: strings.Trim(d.Type, "'"), shape: d.Shape, dataAt: int64(used + n)}, nil
}
