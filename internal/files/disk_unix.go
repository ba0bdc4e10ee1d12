//go:build unix

package files

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// SyncDir makes what was renamed or created inside a folder durable. Nothing
// happens on file systems that cannot.
func SyncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	if err := d.Sync(); err != nil && !errors.Is(err, unix.EINVAL) {
		return err
	}
	return nil
}

// Free returns the bytes a user may still write below an existing folder.
func Free(dir string) (uint64, error) {
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return 0, err
	}
	return uint64(st.Bavail) * uint64(st.Bsize), nil
}
