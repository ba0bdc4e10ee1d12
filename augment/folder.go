package augment

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"deeploop/internal/files"
	"deeploop/internal/wording"
)

// A dataset is written into a hidden folder beside its target and moved there
// when it is complete:
//
//	.NAME.building-RANDOM/lock      held by the writing process
//	.NAME.building-RANDOM/dataset/  what is being written
//	.NAME.building-RANDOM/old/      only for a moment, where two folders cannot be swapped
//
// A process that was killed leaves such a folder with a free lock; the next
// build of the same target removes it.

func stagingPrefix(out string) string { return "." + filepath.Base(out) + ".building-" }

// checkTarget reports whether out may be written: it does not exist, is an
// empty folder, or, with force, is a dataset of ours and nothing else.
func checkTarget(out string, force bool) error {
	info, err := os.Lstat(out)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return inputErrorf("write dataset: %w; choose another --out", err)
	}
	if !info.IsDir() {
		return inputErrorf("write dataset: %s exists and is not a folder; choose another --out", out)
	}
	entries, err := os.ReadDir(out)
	if err != nil {
		return inputErrorf("write dataset: %w; choose another --out", err)
	}
	if len(entries) == 0 {
		return nil
	}
	m, err := ReadManifest(out)
	if err != nil {
		return inputErrorf("write dataset: folder %s exists and is not a dataset of build-data, so it is never overwritten; choose another --out", out)
	}
	if !force {
		return inputErrorf("write dataset: %s exists already (dataset %.12s, num-aug %d); use --force to replace it, or another --out",
			out, m.DatasetHash, m.Settings.NumAug)
	}
	extra, err := extraFiles(out, m)
	if err != nil {
		return err
	}
	if len(extra) > 0 {
		return inputErrorf("write dataset: %s also holds files that build-data did not write (%s), so it is not overwritten; move them or choose another --out",
			out, wording.List(extra, 3))
	}
	return nil
}

// extraFiles lists what is in a dataset folder besides its files.
func extraFiles(dir string, m *Manifest) ([]string, error) {
	var extra []string
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		name := filepath.ToSlash(rel)
		_, ours := m.Files[name]
		switch {
		case name == "." || name == ManifestName || ours:
		case d.IsDir() && (name == "train" || name == "test"):
		default:
			extra = append(extra, name)
			if d.IsDir() {
				return fs.SkipDir
			}
		}
		return nil
	})
	return extra, err
}

// staging is the hidden folder of one build.
type staging struct {
	dir  string
	lock *os.File
}

func (s *staging) dataset() string { return filepath.Join(s.dir, "dataset") }

// newStaging creates the hidden folder and takes its lock.
func newStaging(out string) (*staging, error) {
	parent := filepath.Dir(out)
	if err := os.MkdirAll(parent, 0o755); err != nil {
		return nil, fmt.Errorf("create output folder: %w", err)
	}
	removeStale(out)
	dir, err := os.MkdirTemp(parent, stagingPrefix(out))
	if err != nil {
		return nil, fmt.Errorf("create output folder: %w", err)
	}
	s := &staging{dir: dir}
	if s.lock, err = lockFile(filepath.Join(dir, "lock")); err == nil {
		err = os.Mkdir(s.dataset(), 0o755)
	}
	if err == nil {
		err = os.Chmod(s.dir, 0o755)
	}
	if err != nil {
		s.remove()
		return nil, fmt.Errorf("create output folder: %w", err)
	}
	return s, nil
}

// remove deletes the hidden folder and what is in it.
func (s *staging) remove() error {
	if s.lock != nil {
		s.lock.Close()
	}
	return os.RemoveAll(s.dir)
}

// removeStale removes the hidden folders of dead processes. One that died
// between moving the old dataset away and the new one in gets the old back.
func removeStale(out string) {
	parent := filepath.Dir(out)
	entries, err := os.ReadDir(parent)
	if err != nil {
		return
	}
	for _, e := range entries {
		if !e.IsDir() || !strings.HasPrefix(e.Name(), stagingPrefix(out)) {
			continue
		}
		dir := filepath.Join(parent, e.Name())
		lock, err := lockFile(filepath.Join(dir, "lock"))
		if err != nil {
			continue // its process is alive
		}
		old := filepath.Join(dir, "old")
		if _, err := os.Lstat(old); err == nil {
			if _, err := os.Lstat(out); errors.Is(err, fs.ErrNotExist) && os.Rename(old, out) != nil {
				lock.Close()
				continue
			}
		}
		lock.Close()
		os.RemoveAll(dir)
	}
}

// publish moves the finished dataset to out.
func (s *staging) publish(out string, force bool) error {
	if err := checkTarget(out, force); err != nil {
		return err
	}
	if info, err := os.Lstat(out); err == nil && info.IsDir() {
		if err := os.Remove(out); err != nil { // not empty: a dataset
			return s.replace(out)
		}
	}
	if err := os.Rename(s.dataset(), out); err != nil {
		return fmt.Errorf("move dataset into place: %w", err)
	}
	return files.SyncDir(filepath.Dir(out))
}

// replace puts the new dataset in the old one's place.
func (s *staging) replace(out string) error {
	if exchange(s.dataset(), out) != nil {
		if err := s.swapByRenames(out); err != nil {
			return err
		}
	}
	return files.SyncDir(filepath.Dir(out))
}

func (s *staging) swapByRenames(out string) error {
	old := filepath.Join(s.dir, "old")
	if err := os.Rename(out, old); err != nil {
		return fmt.Errorf("move old dataset away: %w", err)
	}
	if err := os.Rename(s.dataset(), out); err != nil {
		return errors.Join(fmt.Errorf("move dataset into place: %w", err), os.Rename(old, out))
	}
	return nil
}
