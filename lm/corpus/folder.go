package corpus

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"deeploop/internal/checkpoint"
	"deeploop/internal/files"
	"deeploop/internal/wording"
)

// A dataset is written into a hidden folder beside its target and moved there
// when it is complete:
//
//	.NAME.preparing-RANDOM/lock      held by the writing process
//	.NAME.preparing-RANDOM/dataset/  what is being written
//	.NAME.preparing-RANDOM/old/      only for a moment, while a dataset is replaced
//
// A process that was killed leaves such a folder with a free lock; the next
// Prepare of the same target removes it.

func stagingPrefix(out string) string { return "." + filepath.Base(out) + ".preparing-" }

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
		return inputErrorf("write dataset: folder %s exists and is not a dataset of lm prepare, so it is never overwritten; choose another --out", out)
	}
	if !force {
		return inputErrorf("write dataset: %s exists already (dataset %.12s, tokenizer %s); use --force to replace it, or another --out", out, m.DatasetHash, m.Tokenizer)
	}
	ours := map[string]bool{ManifestName: true}
	for _, f := range m.Files {
		ours[f.Name] = true
	}
	var extra []string
	for _, e := range entries {
		if !ours[e.Name()] || !e.Type().IsRegular() {
			extra = append(extra, e.Name())
		}
	}
	if len(extra) > 0 {
		return inputErrorf("write dataset: %s also holds files that lm prepare did not write (%s), so it is not overwritten; move them or choose another --out",
			out, wording.List(extra, 3))
	}
	return nil
}

// staging is the hidden folder of one Prepare.
type staging struct {
	dir  string
	lock *checkpoint.Lock
}

func (s *staging) dataset() string { return filepath.Join(s.dir, "dataset") }

// newStaging creates the hidden folder and takes its lock.
func newStaging(out string) (*staging, error) {
	parent := filepath.Dir(out)
	if err := os.MkdirAll(parent, 0o755); err != nil {
		return nil, inputErrorf("create output folder: %w", err)
	}
	dir, err := os.MkdirTemp(parent, stagingPrefix(out))
	if err != nil {
		return nil, inputErrorf("create output folder: %w", err)
	}
	s := &staging{dir: dir}
	if s.lock, err = checkpoint.Acquire(dir, time.Time{}); err == nil {
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
		_ = s.lock.Release() // the folder goes anyway
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
		lock, err := checkpoint.Acquire(dir, time.Time{})
		if err != nil {
			continue // its process is alive
		}
		old := filepath.Join(dir, "old")
		kept := false
		if _, err := os.Lstat(old); err == nil {
			if _, err := os.Lstat(out); errors.Is(err, fs.ErrNotExist) && os.Rename(old, out) != nil {
				kept = true
			}
		}
		_ = lock.Release() // the folder goes anyway
		if !kept {
			os.RemoveAll(dir)
		}
	}
}

// publish moves the finished dataset to out.
func (s *staging) publish(out string, force bool) error {
	if err := checkTarget(out, force); err != nil {
		return err
	}
	if err := files.SyncDir(s.dataset()); err != nil {
		return fmt.Errorf("write dataset: %w", err)
	}
	old := filepath.Join(s.dir, "old")
	had := false
	if _, err := os.Lstat(out); err == nil {
		if err := os.Rename(out, old); err != nil {
			return fmt.Errorf("move old dataset away: %w", err)
		}
		had = true
	}
	if err := os.Rename(s.dataset(), out); err != nil {
		err = fmt.Errorf("move dataset into place: %w", err)
		if had {
			err = errors.Join(err, os.Rename(old, out))
		}
		return err
	}
	return files.SyncDir(filepath.Dir(out))
}
