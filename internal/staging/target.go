package staging

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
)

// Occupied lists what is in the folder out: nothing where it does not exist or
// is empty, and New may be called for it without a question. Something else
// than a folder is an error.
func Occupied(out string) ([]fs.DirEntry, error) {
	info, err := os.Lstat(out)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		return nil, fmt.Errorf("%s exists and is not a folder", out)
	}
	return os.ReadDir(out)
}
