//go:build unix

package files

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// duplicate opens an open file once more at its own position, so that what
// others write to it comes before and behind.
func duplicate(fd int, path string) (*os.File, error) {
	n, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", path, err)
	}
	return os.NewFile(uintptr(n), path), nil
}
