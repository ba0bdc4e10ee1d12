package checkpoint

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"

	"deeploop/internal/files"
	"deeploop/internal/wording"
)

// Ref names one checkpoint of a Store.
type Ref struct {
	Name string `json:"name"` // folder inside the store
	Step int    `json:"step"`
}

// Best is the checkpoint with the best evaluation so far.
type Best struct {
	Ref
	Metric string  `json:"metric"`
	Value  float64 `json:"value"`
}

// Index says which checkpoints of a store are in force.
type Index struct {
	FormatVersion int   `json:"format_version"`
	Last          *Ref  `json:"last,omitempty"`
	Best          *Best `json:"best,omitempty"`
	Kept          []Ref `json:"kept,omitempty"` // oldest first, without last
	// Evaluated is the last step whose evaluation is in the metrics.
	Evaluated int `json:"evaluated"`
}

// Store is a run's folder of checkpoints. One process at a time may write to
// it (see Lock); any number may read.
type Store struct {
	// Dir is the folder; it is made by the first Save.
	Dir string
	// Keep is how many checkpoints stay beside the last and the best one.
	Keep int
	// FreeBytes returns the free space at a path. Nil asks the system.
	FreeBytes func(path string) (uint64, error)
	// ForgetBest makes the next Save give up the best checkpoint, whose value
	// no longer compares with later ones. Save sets it back.
	ForgetBest bool

	removeAll func(path string) error // nil: os.RemoveAll
}

const tmpPrefix = ".tmp-"

var stepName = regexp.MustCompile(`^step-(\d+)(\.\d+)?$`)

// Index reads the index. A store without one gives an empty Index.
func (s *Store) Index() (Index, error) {
	path := filepath.Join(s.Dir, indexFile)
	b, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return Index{}, nil
	}
	if err != nil {
		return Index{}, fmt.Errorf("read checkpoint index: %w", err)
	}
	var x Index
	if err := json.Unmarshal(b, &x); err != nil {
		return x, badf("read checkpoint index %s: it is damaged (%w); remove it, and it is made again from the step folders", path, err)
	}
	if x.FormatVersion > FormatVersion {
		return x, badf("read checkpoint index %s: it has format version %d, this program reads up to %d; use a newer program",
			path, x.FormatVersion, FormatVersion)
	}
	if x.FormatVersion < 1 {
		return x, badf("read checkpoint index %s: it names no format version, so it is no index of a run", path)
	}
	for _, r := range x.refs() {
		if !stepName.MatchString(r.Name) { // also anything with a path in it
			return x, badf("read checkpoint index %s: it is damaged: it names a checkpoint %q, expected a name like step-00000100; remove it, and it is made again from the step folders",
				path, r.Name)
		}
	}
	return x, nil
}

// refs lists the checkpoints in force, some perhaps twice.
func (x Index) refs() []Ref {
	refs := append([]Ref{}, x.Kept...)
	if x.Best != nil {
		refs = append(refs, x.Best.Ref)
	}
	if x.Last != nil {
		refs = append(refs, *x.Last)
	}
	return refs
}

func (s *Store) writeIndex(x Index) error {
	x.FormatVersion = FormatVersion
	b, err := json.MarshalIndent(x, "", " ")
	if err != nil {
		return err
	}
	return WriteFile(filepath.Join(s.Dir, indexFile), append(b, '\n'))
}

// Path returns the folder of a checkpoint.
func (s *Store) Path(r Ref) string { return filepath.Join(s.Dir, r.Name) }

// Save writes the checkpoint of a step, makes it the last one, and removes
// those that are no longer the last, the best, or among the kept; one that
// cannot be removed is tried again at the next Save. When it fails the previous checkpoints are untouched.
func (s *Store) Save(step int, meta Meta, set *Set) (Ref, error) {
	ref, err := s.save(step, meta, set)
	if err != nil {
		return ref, fmt.Errorf("save checkpoint of step %d in %s: %w", step, s.Dir, err)
	}
	return ref, nil
}

func (s *Store) save(step int, meta Meta, set *Set) (Ref, error) {
	x, err := s.Index()
	if err != nil {
		return Ref{}, err
	}
	if err := s.Room(set); err != nil {
		return Ref{}, err
	}
	if err := os.MkdirAll(s.Dir, 0o755); err != nil {
		return Ref{}, err
	}
	ref := Ref{Name: s.freeName(step), Step: step}
	tmp := filepath.Join(s.Dir, tmpPrefix+ref.Name)
	if err := os.RemoveAll(tmp); err != nil {
		return ref, err
	}
	if err := os.Mkdir(tmp, 0o755); err != nil {
		return ref, err
	}
	if err := writeFolder(tmp, step, meta, set); err != nil {
		os.RemoveAll(tmp)
		return ref, err
	}
	if err := os.Rename(tmp, s.Path(ref)); err != nil {
		os.RemoveAll(tmp)
		return ref, err
	}
	if err := files.SyncDir(s.Dir); err != nil {
		return ref, err
	}
	if x.Last != nil {
		x.Kept = append(x.Kept, *x.Last)
	}
	x.Kept = x.Kept[max(0, len(x.Kept)-max(0, s.Keep)):]
	x.Last = &ref
	if s.ForgetBest {
		x.Best = nil
	}
	if err := s.writeIndex(x); err != nil {
		return ref, err
	}
	s.ForgetBest = false
	s.prune(x)
	return ref, nil
}

// freeName returns a folder name for step that is not taken.
func (s *Store) freeName(step int) string {
	name := fmt.Sprintf("step-%08d", step)
	for i := 2; ; i++ {
		if _, err := os.Lstat(filepath.Join(s.Dir, name)); errors.Is(err, os.ErrNotExist) {
			return name
		}
		name = fmt.Sprintf("step-%08d.%d", step, i)
	}
}

// Room returns an error, naming both numbers, when the disk has no space for
// one more checkpoint of set. Save calls it before it writes.
func (s *Store) Room(set *Set) error {
	const margin = 1 << 20 // headers and JSON
	free := s.FreeBytes
	if free == nil {
		free = files.Free
	}
	dir := s.Dir
	for !exists(dir) && filepath.Dir(dir) != dir {
		dir = filepath.Dir(dir)
	}
	have, err := free(dir)
	if err != nil {
		return fmt.Errorf("find the free disk space: %w", err)
	}
	if need := uint64(set.bytes()) + margin; have < need {
		return fmt.Errorf("it needs %s and the disk has %s free; make room", wording.Bytes(need), wording.Bytes(have))
	}
	return nil
}

// MarkEvaluated records that the last checkpoint was evaluated, and makes it
// the best one where best is not nil.
func (s *Store) MarkEvaluated(step int, best *Best) error {
	x, err := s.Index()
	if err != nil {
		return err
	}
	x.Evaluated = step
	if best != nil {
		x.Best = best
	}
	if err := s.writeIndex(x); err != nil {
		return fmt.Errorf("record the evaluation of step %d: %w", step, err)
	}
	s.prune(x)
	return nil
}
