//go:build !linux

package augment

import "os"

// openDirect creates a file for ordinary writes.
func openDirect(path string) (f *os.File, direct bool, err error) {
	f, err = os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
	return f, false, err
}

func refusesDirect(error) bool { return false }

func endDirect(*os.File) error { return nil }
