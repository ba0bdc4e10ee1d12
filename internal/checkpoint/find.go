package checkpoint

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"

	"deeploop/internal/torchfile"
)

// Choice is which checkpoint of a run is wanted.
type Choice string

// Choices. LastSaved needs no evaluation; BestSaved falls back to the last one
// when none was evaluated.
const (
	LastSaved Choice = "last"
	BestSaved Choice = "best"
)

// Find returns the folder of a checkpoint. path is a run folder, its folder of
// checkpoints, one checkpoint, or a file inside one; which chooses in the
// first two cases.
func Find(path string, which Choice) (string, error) {
	st, err := os.Stat(path)
	if err != nil {
		return "", badf("find checkpoint: %w", err)
	}
	file := ""
	if !st.IsDir() {
		file, path = path, filepath.Dir(path)
	}
	if exists(filepath.Join(path, stateFile)) {
		return path, nil
	}
	for _, dir := range []string{filepath.Join(path, Folder), path} {
		s := Store{Dir: dir}
		x, err := s.Index()
		if err != nil {
			return "", err
		}
		if which == BestSaved && x.Best != nil {
			return s.Path(x.Best.Ref), nil
		}
		if x.Last != nil {
			return s.Path(*x.Last), nil
		}
		refs, err := s.complete()
		if err != nil {
			return "", err
		}
		if n := len(refs); n > 0 {
			return s.Path(refs[n-1]), nil
		}
	}
	if file != "" && st.Mode().IsRegular() {
		if whose := foreign(file); whose != "" {
			return "", badf("find checkpoint: %s is %s, not a checkpoint of this program; hrm import makes a run of one of HRM, lm import of what lm export wrote", file, whose)
		}
		return "", badf("find checkpoint: %s is no file of one (there is no %s beside it); name a run or a checkpoint's folder", file, stateFile)
	}
	return "", badf("find checkpoint: %s holds none (looked for %s, %s and %s)", path, stateFile, indexFile, Folder+"/"+indexFile)
}

// foreign says what kind of file of other programs weights are in, "" for none.
func foreign(path string) string {
	f, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer f.Close()
	head := make([]byte, 9)
	n, _ := io.ReadFull(f, head) // what is shorter is neither
	switch {
	case torchfile.Is(head[:n]):
		return "a file of PyTorch"
	case n == len(head) && head[8] == '{':
		return "a file of safetensors"
	}
	return ""
}

// Folder is the name of the folder of checkpoints inside a run's folder.
const Folder = "checkpoints"

// OpenFound is Open(Find(path, which)). A training that replaces its
// checkpoints between the two is no error: the new one is opened.
func OpenFound(path string, which Choice) (*Reader, error) {
	return openFound(func() (string, error) { return Find(path, which) })
}

// openFound opens the folder that find names; "" is none, and a nil reader. A
// folder that cannot be opened may be on its way out, with some of its files
// gone already: when find then names another, that one is opened.
func openFound(find func() (string, error)) (*Reader, error) {
	dir, err := find()
	for try := 0; err == nil && dir != ""; try++ {
		r, openErr := Open(dir)
		if openErr == nil {
			return r, nil
		}
		failed := dir
		if dir, err = find(); err == nil && dir == failed || try == 3 {
			return nil, openErr
		}
	}
	return nil, err
}

// OpenLast opens the last checkpoint of the store, nil where it has none. The
// error about a damaged one names the others.
func (s *Store) OpenLast() (*Reader, error) {
	r, err := openFound(func() (string, error) {
		x, err := s.Index()
		if err != nil {
			return "", err
		}
		if x.Last == nil {
			refs, err := s.complete()
			if err != nil || len(refs) == 0 {
				return "", err
			}
			x.Last = &refs[len(refs)-1]
		}
		return s.Path(*x.Last), nil
	})
	return r, s.Advise(err)
}

// Advise adds to an error about a damaged last checkpoint which others there
// are; it returns any other error as it is.
func (s *Store) Advise(err error) error {
	if !Damaged(err) {
		return err
	}
	x, indexErr := s.Index()
	if indexErr != nil || x.Last == nil {
		return err
	}
	others := ""
	seen := map[string]bool{x.Last.Name: true}
	for _, r := range x.refs() {
		if dir := s.Path(r); !seen[r.Name] && exists(dir) {
			others += " " + dir
		}
		seen[r.Name] = true
	}
	if others == "" {
		return fmt.Errorf("%w; the run has no other checkpoint: start it again with --force", err)
	}
	return fmt.Errorf("%w; other checkpoints of this run:%s (to go on from the newest of them remove %s and %s)",
		err, others, s.Path(*x.Last), filepath.Join(s.Dir, indexFile))
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// StepOf returns the step in a checkpoint folder's name, for messages.
func StepOf(dir string) (int, bool) {
	m := stepName.FindStringSubmatch(filepath.Base(dir))
	if m == nil {
		return 0, false
	}
	n, err := strconv.Atoi(m[1])
	return n, err == nil
}
