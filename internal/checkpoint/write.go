package checkpoint

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"hash"
	"io"
	"os"
	"path/filepath"

	"deeploop/internal/files"
	"deeploop/internal/safetensors"
)

// writeFolder writes all of set into dir, which must exist and be empty, and
// syncs files and folder.
func writeFolder(dir string, step int, meta Meta, set *Set) error {
	s := state{Step: step, Meta: meta, Values: map[string]map[string]json.RawMessage{}}
	for _, v := range set.values {
		raw, err := json.Marshal(v.ptr)
		if err != nil {
			return fmt.Errorf("write value %s/%s: %w", v.group, v.name, err)
		}
		if s.Values[v.group] == nil {
			s.Values[v.group] = map[string]json.RawMessage{}
		}
		s.Values[v.group][v.name] = raw
	}
	for _, g := range set.groups() {
		f, ts, err := writeTensors(filepath.Join(dir, tensorFile(g)), g, set)
		if err != nil {
			return err
		}
		s.Files = append(s.Files, f)
		s.Tensors = append(s.Tensors, ts...)
	}
	b, err := s.marshal()
	if err != nil {
		return err
	}
	if err := writeSynced(filepath.Join(dir, stateFile), b); err != nil {
		return err
	}
	return files.SyncDir(dir)
}

// headTee hashes what passes while head is set.
type headTee struct {
	w    io.Writer
	head hash.Hash
	n    int64
}

func (t *headTee) Write(p []byte) (int, error) {
	if t.head != nil {
		t.head.Write(p)
	}
	n, err := t.w.Write(p)
	t.n += int64(n)
	return n, err
}

const chunk = 1 << 20

func writeTensors(path, group string, set *Set) (fileInfo, []TensorInfo, error) {
	info := fileInfo{Group: group}
	var list []tensor
	var entries []safetensors.Entry
	for _, t := range set.tensors {
		if t.group == group {
			list = append(list, t)
			entries = append(entries, t.Entry)
		}
	}
	f, err := os.Create(path)
	if err != nil {
		return info, nil, err
	}
	defer f.Close() // a second Close after success is harmless
	head := sha256.New()
	tee := &headTee{w: f, head: head}
	w, err := safetensors.NewWriter(tee, nil, entries)
	if err != nil {
		return info, nil, err
	}
	tee.head = nil
	info.HeaderSHA256 = hex.EncodeToString(head.Sum(nil))
	out := make([]TensorInfo, 0, len(list))
	for _, t := range list {
		h := sha256.New()
		for at := 0; at < len(t.data); at += chunk {
			part := t.data[at:min(at+chunk, len(t.data))]
			h.Write(part)
			if _, err := w.Write(part); err != nil {
				return info, nil, err
			}
		}
		out = append(out, TensorInfo{group, t.Name, t.DType, t.Shape, hex.EncodeToString(h.Sum(nil))})
	}
	if err := w.Finish(); err != nil {
		return info, nil, err
	}
	if err := f.Sync(); err != nil {
		return info, nil, err
	}
	info.Size = tee.n
	return info, out, f.Close()
}

// writeSynced writes a new file and syncs it.
func writeSynced(path string, b []byte) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer f.Close()
	if _, err := f.Write(b); err != nil {
		return err
	}
	if err := f.Sync(); err != nil {
		return err
	}
	return f.Close()
}

// WriteFile replaces path by b: whole or not at all. Links are followed.
func WriteFile(path string, b []byte) error { return files.WriteFile(path, b) }
