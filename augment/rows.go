package augment

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"sync"

	"github.com/klauspost/compress/zstd"
)

// Rows is a uint8 array of Len rows of Size tokens in a file, mapped into
// memory, or unpacked frame by frame where it is compressed. Row may be called
// by several goroutines. The file may be deleted or replaced meanwhile; where
// it is made shorter instead, Row fails.
type Rows struct {
	n, size int
	path    string
	close   func() error

	data []byte // mapped rows; nil when compressed

	frames *frameCache
}

// Len returns the number of rows.
func (r *Rows) Len() int { return r.n }

// Size returns the number of tokens of a row.
func (r *Rows) Size() int { return r.size }

// Close unmaps the file.
func (r *Rows) Close() error { return r.close() }

// Row returns row i in scratch, grown where it is too short. It panics when i is
// out of range.
func (r *Rows) Row(i int, scratch []byte) ([]byte, error) {
	if i < 0 || i >= r.n {
		panic("augment: row out of range")
	}
	if cap(scratch) < r.size {
		scratch = make([]byte, r.size)
	}
	scratch = scratch[:r.size]
	var err error
	if r.frames == nil {
		err = copyMapped(scratch, r.data[i*r.size:])
	} else {
		err = r.frames.copy(scratch, i)
	}
	if err != nil {
		return nil, fmt.Errorf("read row %d of %s: %w", i, r.path, err)
	}
	return scratch, nil
}

// copyMapped fills dst from a mapped file. Memory behind the file's end, or
// that cannot be read from the disk, faults: that is an error.
func copyMapped(dst, mapped []byte) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		switch p := recover().(type) {
		case nil:
		case interface{ Addr() uintptr }: // a fault, see debug.SetPanicOnFault
			err = errors.New("the file was made shorter since it was opened, or cannot be read any more")
		default:
			panic(p)
		}
	}()
	copy(dst, mapped)
	return nil
}

// openRows opens name, or name with .zst, below dir.
func openRows(dir, name string) (*Rows, error) {
	path := filepath.Join(dir, filepath.FromSlash(name))
	f, err := os.Open(path)
	packed := false
	if errors.Is(err, os.ErrNotExist) {
		if g, e := os.Open(path + zstdSuffix); e == nil {
			f, err, packed, path = g, nil, true, path+zstdSuffix
		}
	}
	if err != nil {
		return nil, err
	}
	open := openMapped
	if packed {
		open = openFrames
	}
	r, err := open(f)
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("open %s: %w", path, err)
	}
	r.path = path
	return r, nil
}

// newRows checks the head of a rows array.
func newRows(info npyInfo) (*Rows, error) {
	if info.dtype != "|u1" || len(info.shape) != 2 {
		return nil, fmt.Errorf("the array is %s of shape %v, expected |u1 with two dimensions", info.dtype, info.shape)
	}
	return &Rows{n: info.shape[0], size: info.shape[1]}, nil
}

func openMapped(f *os.File) (*Rows, error) {
	st, err := f.Stat()
	if err != nil {
		return nil, err
	}
	info, err := readNpyInfo(bufio.NewReader(f))
	if err != nil {
		return nil, err
	}
	r, err := newRows(info)
	if err != nil {
		return nil, err
	}
	if want := info.dataAt + int64(r.n)*int64(r.size); st.Size() != want {
		return nil, fmt.Errorf("the file has %d bytes, expected %d for shape %v", st.Size(), want, info.shape)
	}
	data, unmap, err := mapFile(f, st.Size())
	if err != nil {
		return nil, err
	}
	r.data = data[info.dataAt:]
	r.close = func() error { return errors.Join(unmap(), f.Close()) }
	return r, nil
}

func openFrames(f *os.File) (*Rows, error) {
	st, err := f.Stat()
	if err != nil {
		return nil, err
	}
	frames, err := readSeekTable(f, st.Size())
	if err != nil {
		return nil, err
	}
	if len(frames) == 0 {
		return nil, fmt.Errorf("no frames, expected a head and rows")
	}
	c := &frameCache{f: f, decoder: newFrameDecoder(), frames: frames[1:], slots: map[int]*frameSlot{}}
	head, err := c.unpack(frames[0], nil)
	if err != nil {
		return nil, err
	}
	info, err := readNpyInfo(bytes.NewReader(head))
	if err != nil {
		return nil, err
	}
	r, err := newRows(info)
	if err != nil {
		return nil, err
	}
	c.size = r.size
	left := r.n * r.size
	for _, fr := range c.frames {
		want := min(left, frameRows*r.size)
		if int(fr.plain) != want {
			return nil, fmt.Errorf("a frame holds %d bytes, expected %d", fr.plain, want)
		}
		left -= want
	}
	if left != 0 {
		return nil, fmt.Errorf("the frames lack %d bytes of shape %v", left, info.shape)
	}
	r.frames = c
	r.close = func() error { c.decoder.Close(); return f.Close() }
	return r, nil
}

// cachedFrames is the number of unpacked frames kept per array.
const cachedFrames = 64

// frameCache unpacks frames and keeps the last few.
type frameCache struct {
	f       *os.File
	decoder *zstd.Decoder
	frames  []seekFrame
	size    int // of a row

	mu    sync.Mutex
	slots map[int]*frameSlot
	clock int
	raw   []byte
}

type frameSlot struct {
	rows []byte
	used int
}

// copy fills dst with row i.
func (c *frameCache) copy(dst []byte, i int) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := i / frameRows
	s := c.slots[n]
	if s == nil {
		s = c.evict()
		rows, err := c.unpack(c.frames[n], s.rows[:0])
		if err != nil {
			return err
		}
		s.rows = rows
		c.slots[n] = s
	}
	c.clock++
	s.used = c.clock
	at := (i % frameRows) * c.size
	copy(dst, s.rows[at:at+c.size])
	return nil
}

// evict returns a slot to fill: a new one, or the longest unused.
func (c *frameCache) evict() *frameSlot {
	if len(c.slots) < cachedFrames {
		return new(frameSlot)
	}
	oldest := -1
	for n, s := range c.slots {
		if oldest < 0 || s.used < c.slots[oldest].used {
			oldest = n
		}
	}
	s := c.slots[oldest]
	delete(c.slots, oldest)
	return s
}

// unpack decodes one frame, whose checksum the decoder verifies.
func (c *frameCache) unpack(fr seekFrame, dst []byte) ([]byte, error) {
	if cap(c.raw) < int(fr.size) {
		c.raw = make([]byte, fr.size)
	}
	raw := c.raw[:fr.size]
	if _, err := c.f.ReadAt(raw, fr.at); err != nil {
		return nil, err
	}
	out, err := c.decoder.DecodeAll(raw, dst)
	if err == nil && len(out) != int(fr.plain) {
		err = fmt.Errorf("a frame unpacks to %d bytes, expected %d", len(out), fr.plain)
	}
	return out, err
}
