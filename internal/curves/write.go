package curves

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
)

// ext is the format that a file name asks for.
func ext(path string) string { return strings.TrimPrefix(strings.ToLower(filepath.Ext(path)), ".") }

// write puts a picture into path, whole or not at all.
func write(path string, c io.WriterTo) error {
	partial := path + ".partial"
	f, err := os.Create(partial)
	if err != nil {
		return fmt.Errorf("write picture: %w", err)
	}
	_, err = c.WriteTo(f)
	err = errors.Join(err, f.Close())
	if err == nil {
		err = os.Rename(partial, path)
	}
	if err != nil {
		os.Remove(partial)
		return fmt.Errorf("write picture %s: %w", path, err)
	}
	return nil
}
