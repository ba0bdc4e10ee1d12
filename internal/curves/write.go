package curves

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"deeploop/internal/files"
)

// ext is the format that a file name asks for.
func ext(path string) string { return strings.TrimPrefix(strings.ToLower(filepath.Ext(path)), ".") }

// KindOf is the kind of picture that Save writes under a name, false where it
// knows none.
func KindOf(path string) (files.Kind, bool) {
	kind, ok := map[string]files.Kind{"png": files.PNG, "svg": files.SVG, "pdf": files.PDF}[ext(path)]
	return kind, ok
}

// write puts a picture into path, whole or not at all.
func write(path string, c io.WriterTo) error {
	err := files.Write(path, func(w io.Writer) error {
		_, err := c.WriteTo(w)
		return err
	})
	var bad *files.Error
	if err != nil && !errors.As(err, &bad) { // that one names the path
		err = fmt.Errorf("%s: %w", path, err)
	}
	if err != nil {
		return fmt.Errorf("write picture %w", err)
	}
	return nil
}
