package augment

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"sync"

	"github.com/klauspost/compress/zstd"
)

// output writes the files of a dataset and remembers their hashes. Its
// methods may run at the same time.
type output struct {
	dir      string
	compress bool
	progress func(bytes int64) // content bytes written since the last call

	mu    sync.Mutex
	files map[string]FileInfo
}

// sink is one file being written: it hashes content and stored bytes.
type sink struct {
	f              *bulkFile
	content, whole hash.Hash // whole is nil when the file is stored plainly
	info           FileInfo
	frames         []seekFrame
}

func (o *output) create(name string, compress bool) (*sink, string, error) {
	if compress {
		name += zstdSuffix
	}
	path := filepath.Join(o.dir, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, name, err
	}
	f, err := createBulk(path)
	if err != nil {
		return nil, name, err
	}
	s := &sink{f: f, content: sha256.New()}
	if compress {
		s.whole = sha256.New()
	}
	return s, name, nil
}

// put writes content; stored is its zstd frames of the given sizes, or nil.
func (s *sink) put(content, stored []byte, frames []seekFrame) error {
	s.content.Write(content)
	s.info.Bytes += int64(len(content))
	if s.whole == nil {
		_, err := s.f.Write(content)
		return err
	}
	s.frames = append(s.frames, frames...)
	return s.putStored(stored)
}

func (s *sink) putStored(stored []byte) error {
	s.whole.Write(stored)
	s.info.StoredBytes += int64(len(stored))
	_, err := s.f.Write(stored)
	return err
}

// finish writes the seek table and brings the file to the disk.
func (s *sink) finish() (FileInfo, error) {
	var err error
	if s.whole != nil {
		err = s.putStored(appendSeekTable(nil, s.frames))
		s.info.StoredSHA256 = hex.EncodeToString(s.whole.Sum(nil))
	}
	s.info.SHA256 = hex.EncodeToString(s.content.Sum(nil))
	if e := s.f.finish(); err == nil {
		err = e
	}
	return s.info, err
}

// file writes a small file at once. Arrays are compressed where asked.
func (o *output) file(name string, content []byte) error {
	compress := o.compress && filepath.Ext(name) == ".npy"
	s, stored, err := o.create(name, compress)
	if err != nil {
		return err
	}
	var packed []byte
	if compress {
		packed = newFrameEncoder().EncodeAll(content, nil)
	}
	err = s.put(content, packed, []seekFrame{{size: uint32(len(packed)), plain: uint32(len(content))}})
	return o.close(s, stored, err)
}

func (o *output) close(s *sink, name string, err error) error {
	info, e := s.finish()
	if err == nil {
		err = e
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	o.mu.Lock()
	o.files[name] = info
	o.mu.Unlock()
	return nil
}

const (
	// frameRows is the number of rows of a zstd frame: what a reader unpacks
	// to get at one row.
	frameRows = 64
	// chunkRows is the number of rows drawn at a time; they fit a core's cache.
	chunkRows = 4 * frameRows
)

// chunk is a piece of an array on its way through the pipeline.
type chunk struct {
	lo, hi int
	rows   []byte
	packed []byte
	frames []seekFrame
	ready  chan struct{}
}

// rows writes an array of n rows drawn by r: workers draw and compress chunks
// while this goroutine hashes and writes them in order.
func (o *output) rows(ctx context.Context, name string, n int, r *renderer) error {
	s, stored, err := o.create(name, o.compress)
	if err != nil {
		return err
	}
	return o.close(s, stored, o.stream(ctx, s, n, r))
}

func (o *output) stream(ctx context.Context, s *sink, n int, r *renderer) error {
	head := npyHeader("|u1", n, r.rowSize())
	var packedHead []byte
	if o.compress {
		packedHead = newFrameEncoder().EncodeAll(head, nil)
	}
	if err := s.put(head, packedHead, []seekFrame{{size: uint32(len(packedHead)), plain: uint32(len(head))}}); err != nil {
		return err
	}
	workers := max(1, runtime.GOMAXPROCS(0)/2) // two arrays are written at a time
	ctx, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()
	free := make(chan *chunk, 2*workers+1)
	for range cap(free) {
		free <- &chunk{rows: make([]byte, chunkRows*r.rowSize())}
	}
	work, order := make(chan *chunk, cap(free)), make(chan *chunk, cap(free))
	wg.Go(func() {
		defer close(work)
		defer close(order)
		for lo := 0; lo < n; lo += chunkRows {
			select {
			case c := <-free:
				c.lo, c.hi, c.ready = lo, min(n, lo+chunkRows), make(chan struct{})
				work <- c
				order <- c
			case <-ctx.Done():
				return
			}
		}
	})
	for range workers {
		wg.Go(func() {
			var enc *zstd.Encoder
			if o.compress {
				enc = newFrameEncoder()
			}
			for c := range work {
				c.draw(r, enc)
				close(c.ready)
			}
		})
	}
	for c := range order {
		<-c.ready
		if err := s.put(c.rows, c.packed, c.frames); err != nil {
			return err
		}
		o.progress(int64(len(c.rows)))
		free <- c
	}
	return ctx.Err()
}

// draw fills the chunk's rows, and their frames when enc is given.
func (c *chunk) draw(r *renderer, enc *zstd.Encoder) {
	size := r.rowSize()
	c.rows = c.rows[:(c.hi-c.lo)*size]
	r.render(c.rows, c.lo, c.hi)
	c.packed, c.frames = c.packed[:0], c.frames[:0]
	if enc == nil {
		return
	}
	for rest := c.rows; len(rest) > 0; {
		n := min(len(rest), frameRows*size)
		before := len(c.packed)
		c.packed = enc.EncodeAll(rest[:n], c.packed)
		c.frames = append(c.frames, seekFrame{size: uint32(len(c.packed) - before), plain: uint32(n)})
		rest = rest[n:]
	}
}

// hashFile returns size and SHA-256 of a file.
func hashFile(ctx context.Context, path string, progress func(int64)) (int64, string, error) {
	f, err := os.Open(path)
	if err != nil {
		return 0, "", err
	}
	defer f.Close()
	h := sha256.New()
	buf := make([]byte, 1<<18)
	var size int64
	for {
		if err := ctx.Err(); err != nil {
			return size, "", err
		}
		n, err := f.Read(buf)
		h.Write(buf[:n])
		size += int64(n)
		progress(int64(n))
		if err == io.EOF {
			return size, hex.EncodeToString(h.Sum(nil)), nil
		}
		if err != nil {
			return size, "", err
		}
	}
}
