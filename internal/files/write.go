package files

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync/atomic"
)

// TempPrefix begins the names of files that are being written. One that stays
// is of a process that was killed.
const TempPrefix = ".tmp-"

// File is a file being written. It appears at Commit, in place of what is
// there; links are followed. Into a device or a pipe bytes go at once.
type File struct {
	*os.File
	to   target
	done bool
}

// Create starts writing path. Its folder must exist. Call Abort when Commit is
// not reached.
func Create(path string) (*File, error) {
	t, err := resolve(path)
	if err != nil {
		return nil, err
	}
	w := &File{to: t}
	if t.direct && t.fd >= 0 {
		w.File, err = duplicate(t.fd, path)
		return w, err
	}
	if t.direct {
		w.File, err = os.OpenFile(t.path, os.O_WRONLY|os.O_APPEND, 0)
		return w, err
	}
	if w.File, err = create(filepath.Dir(t.path)); err != nil {
		return nil, err
	}
	if t.info != nil {
		if err := w.Chmod(t.info.Mode().Perm()); err != nil {
			w.Abort()
			return nil, err
		}
	}
	return w, nil
}

// created counts the files this process has made names for.
var created atomic.Uint64

// create makes a new file of a unique name in dir, with the permissions that
// new files have.
func create(dir string) (*os.File, error) {
	for {
		name := filepath.Join(dir, fmt.Sprintf("%s%d-%d", TempPrefix, os.Getpid(), created.Add(1)))
		f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o666)
		if !errors.Is(err, fs.ErrExist) { // one that exists is of a killed process or another machine
			return f, err
		}
	}
}

// Direct reports that bytes go at once into a device, a pipe or an open file.
func (w *File) Direct() bool { return w.to.direct }

// Commit brings the bytes to the disk and the file to its name.
func (w *File) Commit() error {
	if w.done {
		panic("files: Commit after Commit or Abort")
	}
	w.done = true
	if w.to.direct {
		return w.Close()
	}
	err := errors.Join(w.Sync(), w.Close())
	if err == nil {
		err = os.Rename(w.Name(), w.to.path)
	}
	if err != nil {
		os.Remove(w.Name())
		return err
	}
	_ = SyncDir(filepath.Dir(w.to.path)) // the file is whole and in place
	return nil
}

// Abort drops what was written. It does nothing after Commit.
func (w *File) Abort() {
	if w.done {
		return
	}
	w.done = true
	w.Close()
	if !w.to.direct {
		os.Remove(w.Name())
	}
}

// Write puts what fill writes into path: whole or not at all.
func Write(path string, fill func(io.Writer) error) error {
	w, err := Create(path)
	if err != nil {
		return err
	}
	defer w.Abort()
	if err := fill(w); err != nil {
		return err
	}
	return w.Commit()
}

// WriteFile replaces path by b: whole or not at all.
func WriteFile(path string, b []byte) error {
	return Write(path, func(w io.Writer) error {
		_, err := w.Write(b)
		return err
	})
}
