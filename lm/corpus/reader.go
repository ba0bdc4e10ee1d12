package corpus

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"unicode/utf8"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"deeploop/internal/wording"
)

// documents are those of one file.
type documents interface {
	// next returns the text of the next document, which must be read before the
	// one after it; io.EOF after the last.
	next() (io.Reader, error)
	// where says in words what is being read, as in "line 3".
	where() string
	close() error
}

// open starts reading a file; read is told the stored bytes read, now and then.
// Errors say which file they are about.
func (s source) open(textKey string, read func(int64)) (documents, error) {
	d, err := s.openKind(textKey, read)
	if err != nil {
		return nil, inputErrorf("read %s: %w", s.path, err)
	}
	return d, nil
}

func (s source) openKind(textKey string, read func(int64)) (documents, error) {
	f, err := os.Open(s.path)
	if err != nil {
		return nil, plainCause(err)
	}
	if s.kind == parquetFile && s.compress == "" {
		return openParquet(f, textKey, read, f.Close)
	}
	plain, closeAll, err := decompress(f, s.compress, read)
	if err != nil {
		f.Close()
		return nil, err
	}
	switch s.kind {
	case parquetFile:
		return unpackParquet(plain, closeAll, textKey)
	case jsonLines:
		return &lines{r: bufio.NewReaderSize(plain, 1<<20), key: textKey, done: closeAll}, nil
	}
	return &whole{r: plain, done: closeAll}, nil
}

// plainCause leaves the path out of an error of the system.
func plainCause(err error) error {
	var p *os.PathError
	if errors.As(err, &p) {
		return p.Err
	}
	return err
}

// counting tells how much was read.
type counting struct {
	r    io.Reader
	read func(int64)
}

func (c counting) Read(b []byte) (int, error) {
	n, err := c.r.Read(b)
	c.read(int64(n))
	if err != nil && err != io.EOF {
		err = plainCause(err)
	}
	return n, err
}

// decompress returns the content of a file.
func decompress(f *os.File, compress string, read func(int64)) (io.Reader, func() error, error) {
	r := counting{f, read}
	switch compress {
	case ".gz":
		z, err := gzip.NewReader(bufio.NewReaderSize(r, 1<<18))
		if err == io.EOF {
			err = errors.New("it is empty, expected gzip")
		}
		if err != nil {
			return nil, nil, fmt.Errorf("not gzip: %w", err)
		}
		return named{z, "gzip"}, f.Close, nil
	case ".zst":
		z, err := zstd.NewReader(r, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(1<<30))
		if err != nil {
			return nil, nil, fmt.Errorf("not zstd: %w", err)
		}
		return named{z, "zstd"}, func() error { z.Close(); return f.Close() }, nil
	}
	return r, f.Close, nil
}

// named says which decompressor an error is of.
type named struct {
	io.Reader
	name string
}

func (n named) Read(b []byte) (int, error) {
	k, err := n.Reader.Read(b)
	if err != nil && err != io.EOF {
		err = fmt.Errorf("the %s data is cut or damaged: %w", n.name, err)
	}
	return k, err
}

// whole is a text file: one document.
type whole struct {
	r    io.Reader
	at   int64
	done func() error
	used bool
}

func (w *whole) next() (io.Reader, error) {
	if w.used {
		return nil, io.EOF
	}
	w.used = true
	return counting{w.r, func(n int64) { w.at += n }}, nil
}

func (w *whole) where() string { return fmt.Sprintf("after byte %d of its text", w.at) }
func (w *whole) close() error  { return w.done() }

// maxLine bounds a line of JSON, which is held in memory.
const maxLine = 256 << 20

// lines are JSON objects, one a line; empty lines do not count.
type lines struct {
	r       *bufio.Reader
	key     string
	number  int64
	line    []byte
	done    func() error
	repairs int64 // documents with half surrogates
}

func (l *lines) where() string { return fmt.Sprintf("line %d", l.number) }
func (l *lines) close() error  { return l.done() }

// readLine reads the next line into l.line, without its end.
func (l *lines) readLine() error {
	l.line = l.line[:0]
	l.number++
	for {
		part, err := l.r.ReadSlice('\n')
		if len(l.line)+len(part) > maxLine {
			return fmt.Errorf("the line has more than %d MiB, which is the most for a JSON document", maxLine>>20)
		}
		l.line = append(l.line, part...)
		switch {
		case err == nil, err == io.EOF && len(l.line) > 0:
			return nil
		case !errors.Is(err, bufio.ErrBufferFull):
			return err
		}
	}
}

func (l *lines) next() (io.Reader, error) {
	for {
		if err := l.readLine(); err != nil {
			return nil, err
		}
		line := l.line
		if l.number == 1 {
			line = bytes.TrimPrefix(line, []byte("\ufeff"))
		}
		if line = bytes.TrimSpace(line); len(line) == 0 {
			continue
		}
		if !utf8.Valid(line) {
			return nil, fmt.Errorf("byte %d of the line is not UTF-8, which JSON has to be", invalidAt(line)+1)
		}
		var object map[string]json.RawMessage
		if err := json.Unmarshal(line, &object); err != nil {
			return nil, jsonProblem(err)
		}
		value, ok := object[l.key]
		if !ok {
			return nil, fmt.Errorf("the object has no key %q (it has %s); choose one with --text-key", l.key, wording.List(slices.Sorted(maps.Keys(object)), 8))
		}
		var text *string
		if err := json.Unmarshal(value, &text); err != nil {
			return nil, fmt.Errorf("the value of %q is no string: %.40s", l.key, value)
		}
		if text == nil {
			return bytes.NewReader(nil), nil // null: a document without text
		}
		if halfSurrogate(*text, value) {
			l.repairs++
		}
		return bytes.NewReader([]byte(*text)), nil
	}
}

// halfSurrogate reports whether a JSON string escapes half a character, which
// reads as U+FFFD.
func halfSurrogate(text string, raw []byte) bool {
	n := bytes.Count([]byte(text), []byte("\ufffd"))
	return n > 0 && n > bytes.Count(raw, []byte("\ufffd"))+bytes.Count(bytes.ToLower(raw), []byte(`\ufffd`))
}

// invalidAt returns where text stops being UTF-8.
func invalidAt(text []byte) int {
	for at := 0; at < len(text); {
		r, size := utf8.DecodeRune(text[at:])
		if r == utf8.RuneError && size == 1 {
			return at
		}
		at += size
	}
	return len(text)
}

func jsonProblem(err error) error {
	var syntax *json.SyntaxError
	var kind *json.UnmarshalTypeError
	switch {
	case errors.As(err, &syntax):
		return fmt.Errorf("byte %d of the line: not JSON: %w", syntax.Offset, err)
	case errors.As(err, &kind):
		return fmt.Errorf("it is a JSON %s, expected an object", kind.Value)
	}
	return fmt.Errorf("not JSON: %w", err)
}
