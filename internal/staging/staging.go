// Package staging writes a folder whole or not at all.
package staging

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"deeploop/internal/files"
)

// Folder is a folder that is being written. It lies in a hidden folder beside
// its target and is moved there when it is complete:
//
//	.NAME.building-RANDOM/lock    held by the writing process
//	.NAME.building-RANDOM/new/    what is being written
//	.NAME.building-RANDOM/old/    only for a moment, where two folders cannot be swapped
//
// A process that was killed leaves such a folder with a free lock; the next New
// for the same target removes it.
type Folder struct {
	out, dir string
	lock     *os.File
}

func prefix(out string) string { return "." + filepath.Base(out) + ".building-" }

// New starts a folder that will be moved to out. The folders above out are
// made where needed.
func New(out string) (*Folder, error) {
	parent := filepath.Dir(out)
	if err := os.MkdirAll(parent, 0o755); err != nil {
		return nil, fmt.Errorf("create output folder: %w", err)
	}
	RemoveStale(out)
	dir, err := os.MkdirTemp(parent, prefix(out))
	if err != nil {
		return nil, fmt.Errorf("create output folder: %w", err)
	}
	f := &Folder{out: out, dir: dir}
	if f.lock, err = lockFile(filepath.Join(dir, "lock")); err == nil {
		err = os.Mkdir(f.Path(), 0o755)
	}
	if err == nil {
		err = os.Chmod(dir, 0o755)
	}
	if err != nil {
		_ = f.Remove() // the first error tells more
		return nil, fmt.Errorf("create output folder: %w", err)
	}
	return f, nil
}

// Path is where to write.
func (f *Folder) Path() string { return filepath.Join(f.dir, "new") }

// Remove deletes the hidden folder and what is in it: what was written, unless
// it was published, and what it replaced.
func (f *Folder) Remove() error {
	if f.lock != nil {
		f.lock.Close()
	}
	if err := os.RemoveAll(f.dir); err != nil {
		return fmt.Errorf("remove %s: %w", f.dir, err)
	}
	return nil
}

// RemoveStale removes the hidden folders of dead processes for a target. One
// that died between moving the old folder away and the new one in gets the old
// back.
func RemoveStale(out string) {
	parent := filepath.Dir(out)
	entries, err := os.ReadDir(parent)
	if err != nil {
		return
	}
	for _, e := range entries {
		if !e.IsDir() || !strings.HasPrefix(e.Name(), prefix(out)) {
			continue
		}
		dir := filepath.Join(parent, e.Name())
		lock, err := lockFile(filepath.Join(dir, "lock"))
		if err != nil {
			continue // its process is alive
		}
		old := filepath.Join(dir, "old")
		kept := false
		if _, err := os.Lstat(old); err == nil {
			_, err := os.Lstat(out)
			kept = errors.Is(err, fs.ErrNotExist) && os.Rename(old, out) != nil
		}
		lock.Close()
		if !kept {
			os.RemoveAll(dir)
		}
	}
}

// Publish moves the folder to its target, in place of a folder that is there:
// in one step where the system can swap folders. Whether that may be replaced
// is the caller's to know.
func (f *Folder) Publish() error {
	if err := files.SyncDir(f.Path()); err != nil {
		return fmt.Errorf("move %s into place: %w", f.out, err)
	}
	if info, err := os.Lstat(f.out); err == nil && info.IsDir() {
		if err := os.Remove(f.out); err != nil { // not empty
			return f.replace()
		}
	}
	if err := os.Rename(f.Path(), f.out); err != nil {
		return fmt.Errorf("move %s into place: %w", f.out, err)
	}
	return files.SyncDir(filepath.Dir(f.out))
}

// replace puts the new folder in the old one's place.
func (f *Folder) replace() error {
	if exchange(f.Path(), f.out) != nil {
		if err := f.swapByRenames(); err != nil {
			return err
		}
	}
	return files.SyncDir(filepath.Dir(f.out))
}

func (f *Folder) swapByRenames() error {
	old := filepath.Join(f.dir, "old")
	if err := os.Rename(f.out, old); err != nil {
		return fmt.Errorf("move the old %s away: %w", f.out, err)
	}
	if err := os.Rename(f.Path(), f.out); err != nil {
		return errors.Join(fmt.Errorf("move %s into place: %w", f.out, err), os.Rename(old, f.out))
	}
	return nil
}
