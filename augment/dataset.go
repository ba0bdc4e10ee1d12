package augment

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sort"
)

// Dataset is an open dataset folder. The large arrays are mapped, not loaded.
type Dataset struct {
	Dir string
	// Manifest is nil for a folder opened with OpenArrays.
	Manifest    *Manifest
	Train, Test *Split
}

// Split is one split of a dataset.
type Split struct {
	Name string
	Metadata
	// Inputs and Labels have a row of SeqLen tokens per example; token 0 is
	// padding, and in labels also "ignored".
	Inputs, Labels *Rows
	// PuzzleIdentifiers per puzzle.
	PuzzleIdentifiers []int32
	// PuzzleIndices[p] is the first example of puzzle p; one more entry ends
	// the last.
	PuzzleIndices []int32
	// GroupIndices[g] is the first puzzle of group g; one more entry ends the
	// last.
	GroupIndices []int32
}

// Examples returns the number of rows.
func (s *Split) Examples() int { return s.Inputs.Len() }

// Puzzles returns the number of puzzles.
func (s *Split) Puzzles() int { return len(s.PuzzleIdentifiers) }

// Groups returns the number of groups, one per task.
func (s *Split) Groups() int { return len(s.GroupIndices) - 1 }

// PuzzleOf returns the puzzle that holds an example.
func (s *Split) PuzzleOf(example int) int {
	return sort.Search(s.Puzzles(), func(p int) bool { return int(s.PuzzleIndices[p+1]) > example })
}

// OpenDataset opens a folder written by Build, compressed or not. It checks
// that all files are there with the sizes of the manifest and that the arrays
// fit together; Verify also checks their hashes.
func OpenDataset(dir string) (*Dataset, error) {
	m, err := ReadManifest(dir)
	if err != nil {
		return nil, err
	}
	for _, name := range sortedNames(m.Files) {
		want, _ := m.Files[name].onDisk()
		info, err := os.Stat(filepath.Join(dir, filepath.FromSlash(name)))
		if err != nil {
			return nil, inputErrorf("open dataset %s: %w; build it again", dir, err)
		}
		if info.Size() != want {
			return nil, inputErrorf("open dataset %s: %s has %d bytes, the manifest says %d; build it again", dir, name, info.Size(), want)
		}
	}
	d, err := OpenArrays(dir)
	if err != nil {
		return nil, err
	}
	d.Manifest = m
	return d, nil
}

// OpenArrays opens a folder in the reference's layout that has no manifest,
// such as one the reference built.
func OpenArrays(dir string) (*Dataset, error) {
	d := &Dataset{Dir: dir}
	for _, part := range []struct {
		name string
		dst  **Split
	}{{"train", &d.Train}, {"test", &d.Test}} {
		s, err := openSplit(dir, part.name)
		if err != nil {
			d.Close()
			return nil, &InputError{fmt.Errorf("open dataset %s: %w", dir, err)}
		}
		*part.dst = s
	}
	if d.Train.SeqLen != d.Test.SeqLen || d.Train.NumPuzzleIdentifiers != d.Test.NumPuzzleIdentifiers {
		d.Close()
		return nil, inputErrorf("open dataset %s: train has sequences of %d and %d identifiers, test of %d and %d, expected the same",
			dir, d.Train.SeqLen, d.Train.NumPuzzleIdentifiers, d.Test.SeqLen, d.Test.NumPuzzleIdentifiers)
	}
	return d, nil
}

// Close releases the mapped arrays.
func (d *Dataset) Close() error {
	var errs []error
	for _, s := range []*Split{d.Train, d.Test} {
		if s != nil {
			errs = append(errs, s.Inputs.Close(), s.Labels.Close())
		}
	}
	return errors.Join(errs...)
}

// NumIdentifiers includes the blank identifier 0.
func (d *Dataset) NumIdentifiers() int { return d.Train.NumPuzzleIdentifiers }

// Identifiers reads the names, by number. A large dataset has a million.
func (d *Dataset) Identifiers() ([]string, error) {
	path := filepath.Join(d.Dir, "identifiers.json")
	raw, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var names []string
	if err := json.Unmarshal(raw, &names); err != nil {
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	if len(names) != d.NumIdentifiers() {
		return nil, inputErrorf("read %s: it has %d names, dataset.json says %d", path, len(names), d.NumIdentifiers())
	}
	return names, nil
}

func sortedNames(files map[string]FileInfo) []string {
	names := make([]string, 0, len(files))
	for name := range files {
		names = append(names, name)
	}
	sort.Strings(names)
	return names
}

// openSplit opens train/ or test/.
func openSplit(dir, name string) (s *Split, err error) {
	s = &Split{Name: name}
	path := filepath.Join(dir, name, "dataset.json")
	raw, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(raw, &s.Metadata); err != nil {
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	for _, a := range []struct {
		name string
		dst  *[]int32
	}{{"puzzle_identifiers", &s.PuzzleIdentifiers}, {"puzzle_indices", &s.PuzzleIndices}, {"group_indices", &s.GroupIndices}} {
		if *a.dst, err = readInt32s(dir, name+"/all__"+a.name+".npy"); err != nil {
			return nil, err
		}
	}
	if s.Inputs, err = openRows(dir, name+"/all__inputs.npy"); err != nil {
		return nil, err
	}
	if s.Labels, err = openRows(dir, name+"/all__labels.npy"); err != nil {
		s.Inputs.Close()
		return nil, err
	}
	if err := s.check(); err != nil {
		s.Inputs.Close()
		s.Labels.Close()
		return nil, fmt.Errorf("%s split: %w", name, err)
	}
	return s, nil
}

// check reports whether the arrays fit together.
func (s *Split) check() error {
	switch {
	case len(s.Sets) != 1 || s.Sets[0] != "all":
		return fmt.Errorf("sets is %v, expected [all]", s.Sets)
	case s.PadID != PadToken || s.BlankIdentifierID != 0 || s.IgnoreLabelID == nil || *s.IgnoreLabelID != PadToken:
		return fmt.Errorf("padding, ignored label and blank identifier are expected to be 0")
	case s.Inputs.Size() != s.SeqLen || s.Labels.Size() != s.SeqLen:
		return fmt.Errorf("rows have %d and %d tokens, dataset.json says %d", s.Inputs.Size(), s.Labels.Size(), s.SeqLen)
	case s.Inputs.Len() != s.Labels.Len():
		return fmt.Errorf("%d inputs and %d labels, expected as many", s.Inputs.Len(), s.Labels.Len())
	}
	if err := checkIndices("puzzle_indices", s.PuzzleIndices, len(s.PuzzleIdentifiers), s.Inputs.Len()); err != nil {
		return err
	}
	if err := checkIndices("group_indices", s.GroupIndices, s.TotalGroups, len(s.PuzzleIdentifiers)); err != nil {
		return err
	}
	for p, id := range s.PuzzleIdentifiers {
		if id < 1 || int(id) >= s.NumPuzzleIdentifiers {
			return fmt.Errorf("puzzle %d has identifier %d, expected 1 to %d", p, id, s.NumPuzzleIdentifiers-1)
		}
	}
	return nil
}

// checkIndices checks the starts of n parts of total things, none empty.
func checkIndices(name string, starts []int32, n, total int) error {
	if len(starts) != n+1 || starts[0] != 0 || int(starts[n]) != total {
		return fmt.Errorf("%s has %d entries, expected %d from 0 to %d", name, len(starts), n+1, total)
	}
	for i := range n {
		if starts[i] >= starts[i+1] {
			return fmt.Errorf("%s falls from %d to %d at %d, expected it to rise", name, starts[i], starts[i+1], i)
		}
	}
	return nil
}
