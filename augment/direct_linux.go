package augment

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// openDirect creates a file for direct writes, or, where the file system has
// none, for ordinary ones.
func openDirect(path string) (f *os.File, direct bool, err error) {
	const flags = os.O_CREATE | os.O_EXCL | os.O_WRONLY
	f, err = os.OpenFile(path, flags|unix.O_DIRECT, 0o644)
	if err == nil {
		return f, true, nil
	}
	if !refusesDirect(err) {
		return nil, false, err
	}
	os.Remove(path) // some file systems create it before they refuse
	f, err = os.OpenFile(path, flags, 0o644)
	return f, false, err
}

func refusesDirect(err error) bool {
	return errors.Is(err, unix.EINVAL) || errors.Is(err, unix.EOPNOTSUPP)
}

// endDirect makes further writes ordinary ones.
func endDirect(f *os.File) error {
	flags, err := unix.FcntlInt(f.Fd(), unix.F_GETFL, 0)
	if err == nil {
		_, err = unix.FcntlInt(f.Fd(), unix.F_SETFL, flags&^unix.O_DIRECT)
	}
	return os.NewSyscallError("fcntl", err)
}
