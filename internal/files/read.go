package files

import (
	"bytes"
	"fmt"
	"io"
	"os"
)

// Read returns the content of a regular file of at most limit bytes. Anything
// else is an *Error that says what was found.
func Read(path string, limit int64) ([]byte, error) {
	info, err := os.Stat(path) // first: to open a pipe would wait
	if err != nil {
		return nil, &Error{path, "cannot be read: " + cause(err)}
	}
	switch {
	case info.IsDir():
		return nil, &Error{path, "is a folder, expected a file"}
	case !info.Mode().IsRegular():
		return nil, &Error{path, fmt.Sprintf("is not a regular file (%v), expected one", info.Mode().Type())}
	case info.Size() > limit:
		return nil, &Error{path, tooLarge(info.Size(), limit)}
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, &Error{path, "cannot be read: " + cause(err)}
	}
	defer f.Close()
	var b bytes.Buffer
	b.Grow(int(info.Size()) + bytes.MinRead)
	if _, err := b.ReadFrom(io.LimitReader(f, limit+1)); err != nil {
		return nil, &Error{path, "cannot be read: " + cause(err)}
	}
	if n := int64(b.Len()); n > limit {
		return nil, &Error{path, tooLarge(n, limit)}
	}
	return b.Bytes(), nil
}

func tooLarge(size, limit int64) string {
	return fmt.Sprintf("has %d bytes, expected at most %d (%d MiB)", size, limit, limit>>20)
}
