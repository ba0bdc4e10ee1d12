package files

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// target is where the bytes written to a path end up.
type target struct {
	path   string      // the path without links; the path as given where direct
	info   fs.FileInfo // nil: there is nothing yet
	direct bool        // a device, a pipe or an open file: written to, never replaced
	fd     int         // where direct: the open file of this process that is meant; -1: none
}

// maxLinks bounds how many links a path may go through, as systems do.
const maxLinks = 40

// resolve follows links, also one that leads to nothing yet.
func resolve(path string) (target, error) {
	info, err := os.Stat(path)
	if err == nil && info.IsDir() {
		return target{}, &Error{path, "is a folder, expected the name of a file"}
	}
	if err == nil && !info.Mode().IsRegular() {
		return target{path: path, info: info, direct: true, fd: -1}, nil
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return target{}, &Error{path, "cannot be written: " + cause(err)}
	}
	t := target{path: path, info: info}
	if err != nil {
		t.info = nil
	}
	for range maxLinks {
		link, err := os.Readlink(t.path)
		isLink := err == nil
		dir, err := filepath.EvalSymlinks(filepath.Dir(t.path))
		if err != nil && isLink {
			return target{}, &Error{path, "cannot be written: " + cause(err)}
		}
		if strings.HasPrefix(dir, "/proc/") || dir == "/dev/fd" { // an open file, such as /dev/stdout
			t.fd = -1
			if dir == fmt.Sprintf("/proc/%d/fd", os.Getpid()) {
				if n, err := strconv.Atoi(filepath.Base(t.path)); err == nil {
					t.fd = n
				}
			}
			t.path, t.direct = path, true
			return t, nil
		}
		if !isLink {
			return t, nil
		}
		if !filepath.IsAbs(link) {
			link = filepath.Join(dir, link)
		}
		t.path = link
	}
	return target{}, &Error{path, "cannot be written: too many links"}
}

// cause is an error of the system without its path.
func cause(err error) string {
	var p *fs.PathError
	if errors.As(err, &p) {
		err = p.Err
	}
	return err.Error()
}

// Kind recognises what one command writes.
type Kind struct {
	Name string // as in "is no NAME"
	// Is looks at the file of that name, which is regular and not empty.
	Is func(path string) bool
}

// Check says, before any work, whether path can be written: its folder exists
// and can be written to (with makeFolders, the nearest folder above it that
// exists), and what is there already is of the kind, empty, no regular file,
// or given up by force. replaces reports that a regular file with content
// will be replaced. Errors are *Error.
func Check(path string, kind Kind, force, makeFolders bool) (replaces bool, err error) {
	t, err := resolve(path)
	if err != nil {
		return false, err
	}
	if t.direct {
		return false, nil
	}
	if err := writable(path, filepath.Dir(t.path), makeFolders); err != nil {
		return false, err
	}
	if t.info == nil || t.info.Size() == 0 {
		return false, nil
	}
	if !force && !kind.Is(t.path) {
		return false, &Error{path, fmt.Sprintf("exists and is no %s, so it is not replaced; choose another name, or --force", kind.Name)}
	}
	return true, nil
}

// writable tries a folder with a file.
func writable(path, dir string, makeFolders bool) error {
	for makeFolders {
		_, err := os.Stat(dir)
		if !errors.Is(err, fs.ErrNotExist) || filepath.Dir(dir) == dir {
			break
		}
		dir = filepath.Dir(dir)
	}
	info, err := os.Stat(dir)
	switch {
	case err != nil:
		return &Error{path, fmt.Sprintf("cannot be written: folder %s: %s", dir, cause(err))}
	case !info.IsDir():
		return &Error{path, fmt.Sprintf("cannot be written: %s is a file, expected a folder", dir)}
	}
	f, err := create(dir)
	if err != nil {
		return &Error{path, fmt.Sprintf("cannot be written: folder %s: %s", dir, cause(err))}
	}
	f.Close()
	os.Remove(f.Name())
	return nil
}
