package predictions

import (
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"

	"deeploop/internal/tensorfile"
	"deeploop/internal/torchfile"
)

// tLogits are the outputs [N, S, V] that the reference saves in place of preds.
const tLogits = "logits"

// partName is what the reference calls the predictions of one of its
// processes: CHECKPOINT_all_preds.RANK.
var partName = regexp.MustCompile(`^(.*_all_preds)\.(\d+)$`)

// Parts returns the files that belong together with a predictions file of the
// reference, in the order of their numbers: those of all its processes.
func Parts(path string) ([]string, error) {
	dir, base := filepath.Split(path)
	m := partName.FindStringSubmatch(base)
	if m == nil {
		return []string{path}, nil
	}
	entries, err := os.ReadDir(filepath.Clean(dir + "."))
	if err != nil {
		return nil, err
	}
	byRank := map[int]string{}
	for _, e := range entries {
		if o := partName.FindStringSubmatch(e.Name()); o != nil && o[1] == m[1] {
			if rank, err := strconv.Atoi(o[2]); err == nil {
				byRank[rank] = dir + e.Name()
			}
		}
	}
	var parts []string
	for rank := range len(byRank) {
		p, ok := byRank[rank]
		if !ok {
			return nil, fmt.Errorf("part %s.%d is missing, and there are parts after it: the answers of one process are not there", m[1], rank)
		}
		parts = append(parts, p)
	}
	return parts, nil
}

// isTorch reports whether a file begins like one of PyTorch.
func isTorch(path string) bool {
	if info, err := os.Stat(path); err != nil || !info.Mode().IsRegular() {
		return false // to open a pipe would wait
	}
	f, err := os.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	head := make([]byte, 4)
	n, _ := io.ReadFull(f, head)
	return torchfile.Is(head[:n])
}

// openParts reads the small tensors of what the reference's evaluate saves
// (sapientinc/HRM, pretrain.py; TRM's alike): a dict of inputs, labels,
// puzzle_identifiers, q_halt_logits and logits or preds, one file for each of
// its processes, which are taken one after the other.
func (f *File) openParts() (err error) {
	if f.parts, err = Parts(f.Path); err != nil {
		return err
	}
	f.tokenTypes = map[string]bool{tInputs: true, tLabels: true}
	for i, path := range f.parts {
		if err := f.openPart(i, path); err != nil {
			var e *tensorfile.Error
			if len(f.parts) > 1 && !errors.As(err, &e) {
				err = fmt.Errorf("%s: %w", filepath.Base(path), err)
			}
			return err
		}
	}
	return nil
}

func (f *File) openPart(i int, path string) error {
	t, err := tensorfile.Open(path)
	if err != nil {
		return err
	}
	defer t.Close()
	answers, dims := tPreds, 2
	if _, ok := t.Info(tPreds); !ok {
		answers, dims = tLogits, 3
	}
	in, ok := t.Info(answers)
	if _, ids := t.Info(tIdentifiers); !ok || !ids {
		return fmt.Errorf("it has no %s and %s or %s, only %s: these are no predictions; of a checkpoint of the reference hrm import makes a run, and hrm eval predicts with it",
			tIdentifiers, tLogits, tPreds, list(t.Names()))
	}
	if len(in.Shape) != dims || in.Shape[dims-1] < 1 {
		return fmt.Errorf("tensor %s is %v, expected %d dimensions", answers, in.Shape, dims)
	}
	rows, seq := in.Shape[0], in.Shape[1]
	if i == 0 {
		f.answers, f.SeqLen = answers, seq
	}
	if answers != f.answers || seq != f.SeqLen {
		return fmt.Errorf("it has %s of %d tokens, the part before %s of %d: they are not of one evaluation", answers, seq, f.answers, f.SeqLen)
	}
	for _, name := range []string{tInputs, tLabels} {
		in, ok := t.Info(name)
		f.tokenTypes[name] = f.tokenTypes[name] && ok
		if ok && !slices.Equal(in.Shape, []int{rows, seq}) {
			return fmt.Errorf("tensor %s is %v, expected %v as %s", name, in.Shape, []int{rows, seq}, answers)
		}
	}
	for _, name := range []string{tIdentifiers, tQHalt} {
		if in, ok := t.Info(name); !ok || !slices.Equal(in.Shape, []int{rows}) {
			return fmt.Errorf("tensor %s is %v, expected [%d], a number for each row", name, in.Shape, rows)
		}
	}
	f.Rows += rows
	bad := int64(0)
	err = t.Ints(tIdentifiers, func(part []int64) {
		for _, id := range part {
			if id < 0 || id > math.MaxInt32 {
				bad = id
			}
			f.Identifiers = append(f.Identifiers, int32(id))
		}
	})
	if err == nil {
		err = t.Floats(tQHalt, func(part []float32) { f.QHalt = append(f.QHalt, part...) })
	}
	if err == nil && bad != 0 {
		err = fmt.Errorf("tensor %s has %d, which is no identifier", tIdentifiers, bad)
	}
	return err
}

func list(names []string) string {
	const most = 8
	if len(names) > most {
		return fmt.Sprintf("%v and %d more", names[:most], len(names)-most)
	}
	return fmt.Sprint(names)
}

// Parts returns how many files the predictions come from.
func (f *File) Parts() int { return max(1, len(f.parts)) }

// partTokens opens the tokens of all parts, one after the other.
func (f *File) partTokens(name string) io.ReadCloser {
	if name == tPreds {
		name = f.answers
	}
	return &tokenReader{parts: f.parts, name: name}
}

// tokenReader turns a tensor of numbers into a byte for each token: whole
// numbers as they are, negative labels (ignored) as 0, and logits [V] as the
// first of the largest.
type tokenReader struct {
	parts []string
	name  string

	file  *tensorfile.File
	raw   io.ReadCloser
	left  int // tokens of the present part
	unit  int // bytes of one
	token func([]byte) (int, bool)
	buf   []byte
}

func (r *tokenReader) Read(p []byte) (int, error) {
	for r.left == 0 {
		if err := r.Close(); err != nil {
			return 0, err
		}
		if len(r.parts) == 0 {
			return 0, io.EOF
		}
		if err := r.next(); err != nil {
			return 0, err
		}
	}
	const most = 4096
	n := min(len(p), r.left, most)
	if len(r.buf) < n*r.unit {
		r.buf = make([]byte, most*r.unit)
	}
	b := r.buf[:n*r.unit]
	if _, err := io.ReadFull(r.raw, b); err != nil {
		return 0, err
	}
	for i := range n {
		t, ok := r.token(b[i*r.unit : (i+1)*r.unit])
		if !ok {
			return 0, fmt.Errorf("tensor %s has the token %d, expected 0 to 255", r.name, t)
		}
		p[i] = uint8(t)
	}
	r.left -= n
	return n, nil
}

// next opens the next part.
func (r *tokenReader) next() (err error) {
	if r.file, err = tensorfile.Open(r.parts[0]); err != nil {
		return err
	}
	r.parts = r.parts[1:]
	in, _ := r.file.Info(r.name)
	r.left, r.buf = in.Len(), nil
	if r.name == tLogits {
		vocab := in.Shape[2]
		r.left /= vocab
		size, number, ok := tensorfile.FloatType(in.DType)
		if !ok {
			return fmt.Errorf("tensor %s is %s, expected floating-point numbers", r.name, in.DType)
		}
		if vocab > 256 {
			return fmt.Errorf("tensor %s is %v: a vocabulary of %d is not that of grids", r.name, in.Shape, vocab)
		}
		r.unit, r.token = size*vocab, func(b []byte) (int, bool) { return largest(b, size, number), true }
	} else {
		size, number, ok := tensorfile.IntType(in.DType)
		if !ok {
			return fmt.Errorf("tensor %s is %s, expected whole numbers", r.name, in.DType)
		}
		ignored := r.name == tLabels
		r.unit, r.token = size, func(b []byte) (int, bool) {
			v := number(b)
			if ignored && v < 0 {
				v = 0
			}
			return int(v), v >= 0 && v <= 255
		}
	}
	r.raw, err = r.file.Reader(r.name)
	return err
}

// largest returns the place of the first largest number; a NaN is larger than
// any, as in PyTorch.
func largest(b []byte, size int, number func([]byte) float32) int {
	best, at := number(b), 0
	for i := 1; i*size < len(b); i++ {
		v := number(b[i*size:])
		if v > best || v != v && best == best {
			best, at = v, i
		}
	}
	return at
}

func (r *tokenReader) Close() error {
	var errs []error
	if r.raw != nil {
		errs = append(errs, r.raw.Close())
	}
	if r.file != nil {
		errs = append(errs, r.file.Close())
	}
	r.raw, r.file = nil, nil
	return errors.Join(errs...)
}
