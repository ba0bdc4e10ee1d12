package checkpoint

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Clean removes what an interrupted save left behind: temporary files and
// checkpoints that the index does not name. Without an index the newest
// readable checkpoint becomes the last one, and step folders that cannot be
// read stay. Call it with the run's lock held.
func (s *Store) Clean() error {
	x, err := s.Index()
	if err != nil {
		return err
	}
	if x.Last != nil {
		s.prune(x)
		return nil
	}
	if err := s.remove(func(name string) bool { return strings.HasPrefix(name, tmpPrefix) }); err != nil {
		return err
	}
	refs, err := s.complete()
	if err != nil || len(refs) == 0 {
		return err
	}
	n := len(refs)
	x.Last, x.Kept = &refs[n-1], refs[:n-1]
	return s.writeIndex(x)
}

// Clear removes all checkpoints and the index, and the folder if nothing else
// is in it.
func (s *Store) Clear() error {
	if err := s.removeUnnamed(Index{}); err != nil {
		return err
	}
	if err := os.Remove(filepath.Join(s.Dir, indexFile)); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	os.Remove(s.Dir) // fails where somebody else's files are in it
	return nil
}

// Holds reports whether the folder holds checkpoints of a run: an index of
// this program or a readable checkpoint.
func (s *Store) Holds() bool {
	if x, err := s.Index(); err == nil && x.FormatVersion > 0 {
		return true
	}
	refs, err := s.complete()
	return err == nil && len(refs) > 0
}

// complete lists the readable checkpoints, oldest first.
func (s *Store) complete() ([]Ref, error) {
	entries, err := os.ReadDir(s.Dir)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	var refs []Ref
	for _, e := range entries {
		if !stepName.MatchString(e.Name()) {
			continue
		}
		r, err := Open(filepath.Join(s.Dir, e.Name()))
		if Damaged(err) {
			continue
		}
		if err != nil {
			return nil, err
		}
		refs = append(refs, Ref{e.Name(), r.Step()})
		r.Close()
	}
	slices.SortStableFunc(refs, func(a, b Ref) int { return a.Step - b.Step })
	return refs, nil
}

// prune removes what x does not name. What cannot be removed now, such as a
// folder that another process reads on Windows, waits for the next time.
func (s *Store) prune(x Index) { _ = s.removeUnnamed(x) }

// removeUnnamed removes every checkpoint and temporary file that x does not
// name.
func (s *Store) removeUnnamed(x Index) error {
	named := map[string]bool{}
	for _, r := range x.refs() {
		named[r.Name] = true
	}
	return s.remove(func(name string) bool {
		return strings.HasPrefix(name, tmpPrefix) || stepName.MatchString(name) && !named[name] && written(filepath.Join(s.Dir, name))
	})
}

// remove removes what old accepts by name. One that stays does not keep the
// others.
func (s *Store) remove(old func(name string) bool) error {
	entries, err := os.ReadDir(s.Dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	removeAll := s.removeAll
	if removeAll == nil {
		removeAll = os.RemoveAll
	}
	var errs []error
	for _, e := range entries {
		if old(e.Name()) {
			if err := removeAll(filepath.Join(s.Dir, e.Name())); err != nil {
				errs = append(errs, fmt.Errorf("remove an old checkpoint: %w", err))
			}
		}
	}
	return errors.Join(errs...)
}

// written reports whether dir holds nothing but files of a checkpoint. Other
// programs name their folders step-N too.
func written(dir string) bool {
	ours := []string{stateFile}
	for _, g := range []string{Weights, EMA, Optimizer, TaskEmbeddings, Carry, Streams} {
		ours = append(ours, tensorFile(g))
	}
	entries, err := os.ReadDir(dir)
	return err == nil && !slices.ContainsFunc(entries, func(e os.DirEntry) bool {
		return !slices.Contains(ours, e.Name()) && !strings.HasPrefix(e.Name(), tmpPrefix)
	})
}
