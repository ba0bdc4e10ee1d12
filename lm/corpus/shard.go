package corpus

import (
	"encoding/binary"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// The header of llm.c's token files.
const (
	headerBytes = 256 * 4
	magic16     = 20240520
	version16   = 1
	magic32     = 20240801
	version32   = 7
)

// shard is an open token file.
type shard struct {
	path   string
	format string
	data   io.ReaderAt
	file   *os.File // nil: in memory
	size   int64
	offset int64 // of the first token
	width  int64 // bytes of a token
	count  int64
}

// appendHeader appends the header of a shard of count tokens of 2 or 4 bytes.
func appendHeader(dst []byte, count, width int64) []byte {
	magic, version := uint32(magic16), uint32(version16)
	if width == 4 {
		magic, version = magic32, version32
	}
	at := len(dst)
	dst = append(dst, make([]byte, headerBytes)...)
	binary.LittleEndian.PutUint32(dst[at:], magic)
	binary.LittleEndian.PutUint32(dst[at+4:], version)
	binary.LittleEndian.PutUint32(dst[at+8:], uint32(count))
	return dst
}

// openShard opens a token file and finds out its format.
func openShard(path string) (*shard, error) {
	info, err := os.Stat(path) // first: to open a pipe would wait
	if err != nil {
		return nil, inputErrorf("open dataset: %w", err)
	}
	if !info.Mode().IsRegular() {
		return nil, inputErrorf("open dataset %s: it is not a regular file (%v)", path, info.Mode().Type())
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, inputErrorf("open dataset: %w", err)
	}
	s, err := sniff(path, f, info.Size())
	if err != nil {
		f.Close()
		return nil, err
	}
	s.file = f
	return s, nil
}

// sniff tells the format by the first bytes: no tokens of GPT-2 look like the
// magic numbers, whose low half is beyond its vocabulary.
func sniff(path string, data io.ReaderAt, size int64) (*shard, error) {
	s := &shard{path: path, data: data, size: size}
	fail := func(format string, args ...any) (*shard, error) {
		return nil, inputErrorf("open dataset %s: %s", path, fmt.Sprintf(format, args...))
	}
	if size == 0 {
		return fail("it is empty, expected tokens")
	}
	head := make([]byte, min(size, headerBytes))
	if _, err := data.ReadAt(head, 0); err != nil && err != io.EOF {
		return fail("%v", err)
	}
	var magic uint32
	if len(head) >= 4 {
		magic = binary.LittleEndian.Uint32(head)
	}
	var version uint32
	switch magic {
	case magic16:
		s.format, s.width, version = FormatLLMC16, 2, version16
	case magic32:
		s.format, s.width, version = FormatLLMC32, 4, version32
	default:
		if filepath.Ext(path) != ".bin" { // as a text file, which would be read without an error
			return fail("it has no header of llm.c and no name that ends in .bin, as tokens of nanoGPT have; if it is text, make a dataset of it with lm prepare --input")
		}
		if size%2 != 0 {
			return fail("it has %d bytes, an odd number, and no header of llm.c, so it holds no uint16 tokens", size)
		}
		s.format, s.width, s.count = FormatNanoGPT, 2, size/2
		return s, nil
	}
	if size < headerBytes {
		return fail("it has %d bytes and begins as a file of llm.c (magic %d), expected a header of %d", size, magic, headerBytes)
	}
	if v := binary.LittleEndian.Uint32(head[4:]); v != version {
		return fail("the version at byte 4 is %d, expected %d for magic %d", v, version, magic)
	}
	s.offset = headerBytes
	s.count = int64(int32(binary.LittleEndian.Uint32(head[8:])))
	if want := headerBytes + s.width*s.count; s.count < 0 || want != size {
		return fail("the header at byte 8 says %d tokens of %d bytes, so %d bytes with it, and the file has %d; it is cut or damaged", s.count, s.width, want, size)
	}
	return s, nil
}

// read reads tokens from number at on; buf is scratch of len(dst)*4 bytes.
func (s *shard) read(dst []int32, at int64, buf []byte) error {
	buf = buf[:int64(len(dst))*s.width]
	if n, err := s.data.ReadAt(buf, s.offset+at*s.width); n < len(buf) {
		if err == io.EOF {
			err = io.ErrUnexpectedEOF
		}
		return fmt.Errorf("read tokens %s: at byte %d: %w", s.path, s.offset+at*s.width+int64(n), err)
	}
	if s.width == 2 {
		for i := range dst {
			dst[i] = int32(binary.LittleEndian.Uint16(buf[2*i:]))
		}
		return nil
	}
	for i := range dst {
		dst[i] = int32(binary.LittleEndian.Uint32(buf[4*i:]))
	}
	return nil
}
