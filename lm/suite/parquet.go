package suite

import (
	"bytes"
	"fmt"
	"io"

	"github.com/parquet-go/parquet-go"
)

// maxParquet bounds a parquet file, which is read from its end and so is held
// whole. Those of the public tasks have some megabytes.
const maxParquet = 1 << 30

// eachParquetRow visits the rows of a parquet file. Groups become objects and
// lists become lists, so a row looks as it would in JSON lines.
func eachParquetRow(r io.Reader, name string, visit func(number int, r row) error) error {
	raw, err := io.ReadAll(io.LimitReader(r, maxParquet+1))
	switch {
	case err != nil:
		return fmt.Errorf("read %s: %w", name, err)
	case len(raw) > maxParquet:
		return &Error{name, 0, fmt.Sprintf("this parquet file has more than %d bytes; convert it to JSON lines first", maxParquet)}
	}
	rows, err := parquetRows(raw)
	if err != nil {
		return &Error{name, 0, fmt.Sprintf("the parquet data is cut or damaged: %v", err)}
	}
	for i, v := range rows {
		r, ok := v.(map[string]any)
		if !ok {
			return &Error{name, 0, fmt.Sprintf("row %d is no record", i+1)}
		}
		if err := visit(i+1, r); err != nil {
			return err
		}
	}
	return nil
}

// parquetRows decodes a whole file. The library panics on some damaged ones.
func parquetRows(raw []byte) (rows []any, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%v", p)
		}
	}()
	return parquet.Read[any](bytes.NewReader(raw), int64(len(raw)))
}
