package augment

import (
	"os"
	"unsafe"
)

const (
	bulkBuffer = 1 << 20
	bulkAlign  = 4096
)

// bulkFile is a new file written in large aligned blocks, past the page cache
// where the system can: gigabytes that nobody reads soon would only push out
// what is in use, and cost more CPU than all the drawing.
type bulkFile struct {
	f      *os.File
	direct bool
	buf    []byte
	used   int
}

func createBulk(path string) (*bulkFile, error) {
	f, direct, err := openDirect(path)
	if err != nil {
		return nil, err
	}
	raw := make([]byte, bulkBuffer+bulkAlign)
	skip := -int(uintptr(unsafe.Pointer(&raw[0]))) & (bulkAlign - 1)
	return &bulkFile{f: f, direct: direct, buf: raw[skip : skip+bulkBuffer]}, nil
}

// Write appends p.
func (b *bulkFile) Write(p []byte) (int, error) {
	written := 0
	for len(p) > 0 {
		n := copy(b.buf[b.used:], p)
		b.used += n
		written += n
		p = p[n:]
		if b.used == len(b.buf) {
			if err := b.flush(); err != nil {
				return written, err
			}
		}
	}
	return written, nil
}

// flush writes the buffer. The last, odd-sized block goes through the cache,
// as does everything where the file system refuses direct writes.
func (b *bulkFile) flush() error {
	if b.direct && b.used == len(b.buf) {
		n, err := b.f.Write(b.buf)
		if err == nil {
			b.used = 0
			return nil
		}
		if n > 0 || !refusesDirect(err) {
			return err
		}
	}
	if b.direct {
		if err := endDirect(b.f); err != nil {
			return err
		}
		b.direct = false
	}
	_, err := b.f.Write(b.buf[:b.used])
	b.used = 0
	return err
}

// finish writes what is left and brings the file to the disk.
func (b *bulkFile) finish() error {
	err := b.flush()
	if err == nil {
		err = b.f.Sync()
	}
	if e := b.f.Close(); err == nil {
		err = e
	}
	return err
}
