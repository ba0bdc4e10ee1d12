package corpus

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/parquet-go/parquet-go"

	"deeploop/internal/wording"
)

// table are the rows of a parquet file, one text column of them, read page by
// page.
type table struct {
	file   *parquet.File
	column int
	group  int // row group being read
	pages  parquet.Pages
	values parquet.ValueReader
	page   parquet.Page
	buffer [64]parquet.Value
	ready  []parquet.Value
	row    int64
	done   func() error
}

// openParquet starts reading a parquet file.
func openParquet(f *os.File, column string, read func(int64), done func() error) (d documents, err error) {
	defer func() {
		if err = recovered(recover(), err); err != nil {
			d = nil
			done()
		}
	}()
	info, err := f.Stat()
	if err != nil {
		return nil, plainCause(err)
	}
	file, err := parquet.OpenFile(countingAt{f, read}, info.Size(), parquet.SkipPageIndex(true), parquet.SkipBloomFilters(true))
	if err != nil {
		return nil, fmt.Errorf("not parquet, or cut or damaged: %w", err)
	}
	var names []string
	for _, c := range file.Root().Columns() {
		names = append(names, c.Name())
		if c.Name() != column {
			continue
		}
		if !c.Leaf() || c.Repeated() || c.Type().Kind() != parquet.ByteArray {
			return nil, fmt.Errorf("column %q holds no text (%s)", column, c.String())
		}
		return &table{file: file, column: c.Index(), done: done}, nil
	}
	return nil, fmt.Errorf("there is no column %q (there are %s); choose one with --text-key", column, wording.List(names, 8))
}

// unpackParquet reads a compressed parquet file by way of a temporary one:
// parquet is read from its end.
func unpackParquet(plain io.Reader, closeInput func() error, column string) (documents, error) {
	defer closeInput()
	f, err := os.CreateTemp("", "lm-prepare-*.parquet")
	if err != nil {
		return nil, err
	}
	done := func() error { return errors.Join(f.Close(), os.Remove(f.Name())) }
	if _, err := io.Copy(f, plain); err != nil {
		done()
		return nil, err
	}
	return openParquet(f, column, func(int64) {}, done)
}

// recovered turns a panic of the parquet library, which damaged files cause,
// into an error.
func recovered(panicked any, err error) error {
	if panicked != nil {
		return fmt.Errorf("the parquet data is damaged: %v", panicked)
	}
	return err
}

// countingAt tells how much was read.
type countingAt struct {
	r    io.ReaderAt
	read func(int64)
}

func (c countingAt) ReadAt(b []byte, at int64) (int, error) {
	n, err := c.r.ReadAt(b, at)
	c.read(int64(n))
	return n, err
}

func (t *table) where() string { return fmt.Sprintf("after row %d, in row group %d", t.row, t.group) }

func (t *table) close() error {
	if t.page != nil {
		parquet.Release(t.page)
	}
	var err error
	if t.pages != nil {
		err = t.pages.Close()
	}
	return errors.Join(err, t.done())
}

func (t *table) next() (r io.Reader, err error) {
	defer func() { err = recovered(recover(), err) }()
	for len(t.ready) == 0 {
		if err := t.fill(); err != nil {
			if err != io.EOF {
				err = fmt.Errorf("the parquet data is cut or damaged: %w", err)
			}
			return nil, err
		}
	}
	v := t.ready[0]
	t.ready = t.ready[1:]
	t.row++
	if v.IsNull() {
		return bytes.NewReader(nil), nil
	}
	return bytes.NewReader(bytes.Clone(v.ByteArray())), nil
}

// fill reads some values, of the next page or row group where one is done. It
// may read none.
func (t *table) fill() error {
	if t.values != nil {
		n, err := t.values.ReadValues(t.buffer[:])
		t.ready = t.buffer[:n]
		if err == io.EOF {
			for i := range t.ready { // those of a released page may be overwritten
				t.ready[i] = t.ready[i].Clone()
			}
			parquet.Release(t.page)
			t.page, t.values, err = nil, nil, nil
		}
		return err
	}
	if t.pages == nil {
		groups := t.file.RowGroups()
		if t.group == len(groups) {
			if t.row != t.file.NumRows() {
				return fmt.Errorf("it has %d rows, its footer says %d", t.row, t.file.NumRows())
			}
			return io.EOF
		}
		t.pages = groups[t.group].ColumnChunks()[t.column].Pages()
		t.group++
	}
	page, err := t.pages.ReadPage()
	if err == io.EOF {
		err = t.pages.Close()
		t.pages = nil
		return err
	}
	if err != nil {
		return err
	}
	t.page, t.values = page, page.Values()
	return nil
}
