package files

import "golang.org/x/sys/windows"

// SyncDir does nothing: Windows has no way to sync a folder.
func SyncDir(string) error { return nil }

// Free returns the bytes a user may still write below an existing folder.
func Free(dir string) (uint64, error) {
	name, err := windows.UTF16PtrFromString(dir)
	if err != nil {
		return 0, err
	}
	var free uint64
	err = windows.GetDiskFreeSpaceEx(name, &free, nil, nil)
	return free, err
}
