package checkpoint

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sort"
)

// FormatVersion is what this program writes. It reads this and older ones.
const FormatVersion = 1

const (
	stateFile = "state.json"
	indexFile = "index.json"
)

// state is the content of state.json.
type state struct {
	Step    int                                   `json:"step"`
	Meta    Meta                                  `json:"meta"`
	Files   []fileInfo                            `json:"files"`
	Tensors []TensorInfo                          `json:"tensors"`
	Values  map[string]map[string]json.RawMessage `json:"values"` // by group and name
}

type fileInfo struct {
	Group        string `json:"group"`
	Size         int64  `json:"size"`
	HeaderSHA256 string `json:"header_sha256"`
}

// TensorInfo describes one tensor of a checkpoint.
type TensorInfo struct {
	Group  string `json:"group"`
	Name   string `json:"name"`
	DType  string `json:"dtype"`
	Shape  []int  `json:"shape"`
	SHA256 string `json:"sha256"`
}

// envelope is state.json itself: SHA256 is that of the compact State.
type envelope struct {
	FormatVersion int             `json:"format_version"`
	SHA256        string          `json:"sha256"`
	State         json.RawMessage `json:"state"`
}

func (s *state) marshal() ([]byte, error) {
	raw, err := json.Marshal(s)
	if err != nil {
		return nil, err
	}
	return json.MarshalIndent(envelope{FormatVersion, hexSum(raw), raw}, "", " ")
}

func readState(dir string) (*state, error) {
	path := filepath.Join(dir, stateFile)
	b, err := os.ReadFile(path)
	switch {
	case errors.Is(err, os.ErrNotExist) && !exists(dir):
		return nil, damagedf("open checkpoint %s: it does not exist", dir)
	case errors.Is(err, os.ErrNotExist):
		return nil, damagedf("open checkpoint %s: %s is missing", dir, stateFile)
	case err != nil:
		return nil, fmt.Errorf("open checkpoint: %w", err)
	}
	var e envelope
	if err := json.Unmarshal(b, &e); err != nil {
		return nil, damagedf("open checkpoint %s: %s is cut short or damaged (%w)", dir, stateFile, err)
	}
	if e.FormatVersion > FormatVersion {
		return nil, badf("open checkpoint %s: it has format version %d, this program reads up to %d; use a newer program",
			dir, e.FormatVersion, FormatVersion)
	}
	if e.FormatVersion < 1 {
		return nil, damagedf("open checkpoint %s: %s names no format version", dir, stateFile)
	}
	var raw bytes.Buffer
	if err := json.Compact(&raw, e.State); err != nil || hexSum(raw.Bytes()) != e.SHA256 {
		return nil, damagedf("open checkpoint %s: %s is damaged: its content does not match its sha256", dir, stateFile)
	}
	s := &state{}
	if err := json.Unmarshal(raw.Bytes(), s); err != nil {
		return nil, badf("open checkpoint %s: read %s: %w", dir, stateFile, err)
	}
	return s, nil
}

// digest is one SHA-256 over step, tensors and values, in an order that does
// not depend on how they were listed.
func (s *state) digest() string {
	h := sha256.New()
	fmt.Fprintf(h, "step %d\n", s.Step)
	ts := append([]TensorInfo{}, s.Tensors...)
	sort.Slice(ts, func(i, j int) bool {
		if ts[i].Group != ts[j].Group {
			return ts[i].Group < ts[j].Group
		}
		return ts[i].Name < ts[j].Name
	})
	for _, t := range ts {
		fmt.Fprintf(h, "tensor %q %q %s %d %s\n", t.Group, t.Name, t.DType, t.Shape, t.SHA256)
	}
	for _, group := range sortedKeys(s.Values) {
		for _, name := range sortedKeys(s.Values[group]) {
			fmt.Fprintf(h, "value %q %q %s\n", group, name, s.Values[group][name])
		}
	}
	return hex.EncodeToString(h.Sum(nil))
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	return keys
}

func hexSum(b []byte) string {
	s := sha256.Sum256(b)
	return hex.EncodeToString(s[:])
}

func tensorFile(group string) string { return group + ".safetensors" }
