package view

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"sync"

	"deeploop/internal/runlog"
)

// follower reads a metrics.jsonl as it grows. A last line that is not whole is
// left for the next time. When a run is resumed the file is cut and goes on
// from there: what was read is then no longer what stands in the file, which
// the bytes before the place reached tell, and it is read again from the start.
type follower struct {
	path string

	mu      sync.Mutex
	offset  int64  // bytes read, whole lines
	tail    []byte // the last of them
	again   int    // how often it began again
	lines   int
	step    int // of the last line
	metrics map[string]map[string]*series
}

// tailBytes before the place reached must not have changed.
const tailBytes = 512

// maxLine bounds a line of metrics.
const maxLine = 1 << 20

func newFollower(path string) *follower {
	f := &follower{path: path}
	f.reset()
	return f
}

func (f *follower) reset() {
	f.offset, f.tail, f.lines, f.step = 0, nil, 0, 0
	f.metrics = map[string]map[string]*series{runlog.Train: {}, runlog.Eval: {}}
}

// update reads what is new. A file that is not there has no lines.
func (f *follower) update() error {
	file, err := os.Open(f.path)
	if errors.Is(err, fs.ErrNotExist) {
		if f.lines > 0 {
			f.again++
		}
		f.reset()
		return nil
	}
	if err != nil {
		return err
	}
	defer file.Close()
	if f.offset > 0 && !f.unchanged(file) {
		f.again++
		f.reset()
	}
	if _, err := file.Seek(f.offset, io.SeekStart); err != nil {
		return err
	}
	return f.read(file)
}

// unchanged reports whether the bytes before the place reached are those read.
func (f *follower) unchanged(file *os.File) bool {
	have := make([]byte, len(f.tail))
	_, err := file.ReadAt(have, f.offset-int64(len(f.tail)))
	return err == nil && bytes.Equal(have, f.tail)
}

func (f *follower) read(r io.Reader) error {
	var rest []byte
	buf := make([]byte, 1<<18)
	for {
		n, err := r.Read(buf)
		rest = append(rest, buf[:n]...)
		for {
			i := bytes.IndexByte(rest, '\n')
			if i < 0 {
				break
			}
			var l runlog.Line
			if json.Unmarshal(rest[:i], &l) != nil {
				return nil // being written in pieces, or damaged: as far as it goes
			}
			f.take(l, rest[:i+1])
			rest = rest[i+1:]
		}
		if len(rest) > maxLine {
			return &Error{f.path, fmt.Sprintf("line %d has more than %d bytes", f.lines+1, maxLine)}
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// take adds a line.
func (f *follower) take(l runlog.Line, raw []byte) {
	f.offset += int64(len(raw))
	f.tail = append(f.tail, raw...)
	if extra := len(f.tail) - tailBytes; extra > 0 {
		f.tail = slices.Clone(f.tail[extra:])
	}
	f.lines++
	f.step = l.Step
	all := f.metrics[l.Event]
	if all == nil {
		return // of a newer program
	}
	for name, v := range l.Values {
		if all[name] == nil {
			all[name] = &series{}
		}
		all[name].add(l.Step, v)
	}
}

// version tells states of the file apart.
func (f *follower) version() string { return fmt.Sprintf("%d-%d", f.again, f.offset) }
