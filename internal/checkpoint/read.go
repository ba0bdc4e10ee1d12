package checkpoint

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"deeploop/internal/safetensors"
)

// Reader is an open checkpoint. Opening checks everything but the tensors'
// bytes, which are checked as they are read.
type Reader struct {
	dir   string
	st    *state
	files map[string]*safetensors.File // by group
}

// Open opens the checkpoint in folder dir (one that holds a state.json).
func Open(dir string) (*Reader, error) {
	st, err := readState(dir)
	if err != nil {
		return nil, err
	}
	r := &Reader{dir: dir, st: st, files: map[string]*safetensors.File{}}
	for _, fi := range st.Files {
		if err := r.openFile(fi); err != nil {
			r.Close()
			return nil, err
		}
	}
	for _, t := range st.Tensors {
		f := r.files[t.Group]
		if f == nil || !f.Has(t.Name) || f.Tensors[t.Name].DType != t.DType || !slices.Equal(f.Tensors[t.Name].Shape, t.Shape) {
			r.Close()
			return nil, damagedf("open checkpoint %s: tensor %s/%s is not in its file as %s says", dir, t.Group, t.Name, stateFile)
		}
	}
	return r, nil
}

func (r *Reader) openFile(fi fileInfo) error {
	path := filepath.Join(r.dir, tensorFile(fi.Group))
	st, err := os.Stat(path)
	if errors.Is(err, os.ErrNotExist) {
		return damagedf("open checkpoint %s: %s is missing", r.dir, filepath.Base(path))
	}
	if err != nil {
		return fmt.Errorf("open checkpoint: %w", err)
	}
	if st.Size() != fi.Size {
		return damagedf("open checkpoint %s: %s has %d bytes, %d expected: it is cut short or damaged",
			r.dir, filepath.Base(path), st.Size(), fi.Size)
	}
	sum, err := headerSum(path)
	if err != nil {
		return fmt.Errorf("open checkpoint: %w", err)
	}
	if sum != fi.HeaderSHA256 {
		return damagedf("open checkpoint %s: the header of %s is damaged", r.dir, filepath.Base(path))
	}
	f, err := safetensors.Open(path)
	if err != nil {
		return damagedf("open checkpoint: %w", err)
	}
	r.files[fi.Group] = f
	return nil
}

// headerSum hashes the head of a safetensors file as far as it claims to go.
func headerSum(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := sha256.New()
	var n [8]byte
	if _, err := io.ReadFull(f, n[:]); err != nil {
		return "", nil
	}
	h.Write(n[:])
	size := int64(0)
	for i := 7; i >= 0; i-- {
		size = size<<8 | int64(n[i])
	}
	if size < 0 || size > safetensors.MaxHeader {
		return "", nil
	}
	if _, err := io.CopyN(h, f, size); err != nil && err != io.EOF {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// Close closes the files.
func (r *Reader) Close() error {
	var err error
	for _, f := range r.files {
		err = errors.Join(err, f.Close())
	}
	return err
}

// Dir returns the checkpoint's folder.
func (r *Reader) Dir() string { return r.dir }

// Step returns the number of steps made.
func (r *Reader) Step() int { return r.st.Step }

// Meta returns the description.
func (r *Reader) Meta() Meta { return r.st.Meta }

// Tensors lists all tensors, group by group in file order.
func (r *Reader) Tensors() []TensorInfo { return r.st.Tensors }

// HasGroup reports whether the checkpoint has tensors or values of a group.
func (r *Reader) HasGroup(group string) bool {
	return r.files[group] != nil || len(r.st.Values[group]) > 0
}

// Value decodes a value into ptr.
func (r *Reader) Value(group, name string, ptr any) error {
	raw, ok := r.st.Values[group][name]
	if !ok {
		return badf("load checkpoint %s: no value %s/%s", r.dir, group, name)
	}
	if err := json.Unmarshal(raw, ptr); err != nil {
		return badf("load checkpoint %s: value %s/%s: %w", r.dir, group, name, err)
	}
	return nil
}

// Load fills everything that set lists from the checkpoint, except the groups
// in skip. All names, types and shapes are compared first; nothing is written
// when one differs, and the error lists the differences.
func (r *Reader) Load(set *Set, skip ...string) error {
	if err := r.compare(set, skip); err != nil {
		return err
	}
	for _, t := range set.tensors {
		if slices.Contains(skip, t.group) {
			continue
		}
		if err := r.readTensor(t.group, t.Name, t.data, nil); err != nil {
			return err
		}
	}
	for _, v := range set.values {
		if slices.Contains(skip, v.group) {
			continue
		}
		if err := r.Value(v.group, v.name, v.ptr); err != nil {
			return err
		}
	}
	return nil
}

// compare checks set against the checkpoint in both directions, for the
// groups that set has.
func (r *Reader) compare(set *Set, skip []string) error {
	var diff []string
	wanted := map[string]bool{}
	groups := map[string]bool{}
	stored := map[string]TensorInfo{}
	for _, t := range r.st.Tensors {
		stored[t.Group+"/"+t.Name] = t
	}
	for _, t := range set.tensors {
		key := t.group + "/" + t.Name
		groups[t.group], wanted[key] = true, true
		if slices.Contains(skip, t.group) {
			continue
		}
		have, ok := stored[key]
		switch {
		case !ok:
			diff = append(diff, fmt.Sprintf("%s %v is missing in the checkpoint", key, t.Shape))
		case have.DType != t.DType || !slices.Equal(have.Shape, t.Shape):
			diff = append(diff, fmt.Sprintf("%s is %s %v in the checkpoint, %s %v wanted", key, have.DType, have.Shape, t.DType, t.Shape))
		}
	}
	for _, v := range set.values {
		key := v.group + "/" + v.name
		groups[v.group], wanted[key] = true, true
		if _, ok := r.st.Values[v.group][v.name]; !ok && !slices.Contains(skip, v.group) {
			diff = append(diff, fmt.Sprintf("value %s is missing in the checkpoint", key))
		}
	}
	for _, t := range r.st.Tensors {
		if key := t.Group + "/" + t.Name; groups[t.Group] && !wanted[key] && !slices.Contains(skip, t.Group) {
			diff = append(diff, fmt.Sprintf("%s %v of the checkpoint is not in this model", key, t.Shape))
		}
	}
	for _, g := range sortedKeys(r.st.Values) {
		for _, n := range sortedKeys(r.st.Values[g]) {
			if groups[g] && !wanted[g+"/"+n] && !slices.Contains(skip, g) {
				diff = append(diff, fmt.Sprintf("value %s/%s of the checkpoint is not in this model", g, n))
			}
		}
	}
	if len(diff) == 0 {
		return nil
	}
	const most = 20
	more := ""
	if len(diff) > most {
		more = fmt.Sprintf("\n  and %d more", len(diff)-most)
		diff = diff[:most]
	}
	return badf("load checkpoint %s: it does not fit this model:\n  %s%s", r.dir, strings.Join(diff, "\n  "), more)
}

// Scan gives visit the bytes of a tensor in order, whole numbers at a time,
// and then compares their hash.
func (r *Reader) Scan(group, name string, visit func(part []byte)) error {
	return r.readTensor(group, name, nil, visit)
}

// readTensor fills dst (nil: none) with a tensor, shows visit (nil: nobody) its
// parts and compares its hash.
func (r *Reader) readTensor(group, name string, dst []byte, visit func(part []byte)) error {
	in, info, err := r.files[group].Reader(name)
	if err != nil {
		return badf("load checkpoint: %w", err)
	}
	var scratch []byte
	if dst == nil {
		scratch = make([]byte, min(chunk, info.End-info.Begin))
	}
	h := sha256.New()
	for at, n := int64(0), info.End-info.Begin; at < n; at += chunk {
		part := scratch
		if dst != nil {
			part = dst[at:min(at+chunk, n)]
		}
		part = part[:min(chunk, n-at)]
		if _, err := io.ReadFull(in, part); err != nil {
			return damagedf("load checkpoint %s: read tensor %s/%s: %w", r.dir, group, name, err)
		}
		h.Write(part)
		if visit != nil {
			visit(part)
		}
	}
	sum := hex.EncodeToString(h.Sum(nil))
	for _, t := range r.st.Tensors {
		if t.Group == group && t.Name == name && t.SHA256 != sum {
			return damagedf("load checkpoint %s: tensor %s/%s is damaged: its bytes do not match their sha256", r.dir, group, name)
		}
	}
	return nil
}

// Verify reads every tensor and compares its hash.
func (r *Reader) Verify() error {
	for _, t := range r.st.Tensors {
		if err := r.readTensor(t.Group, t.Name, nil, nil); err != nil {
			return err
		}
	}
	return nil
}

// Digest returns one SHA-256, in hex, over all tensors (weights, averages,
// optimizer, carry), all values (random streams, loader position) and the
// step, after checking the files against it. Two runs of the same settings,
// seed, kernel and thread count have equal digests at equal steps, wherever
// they ran and however often they were interrupted.
func (r *Reader) Digest() (string, error) {
	if err := r.Verify(); err != nil {
		return "", err
	}
	return r.st.digest(), nil
}
