package checkpoint

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"slices"
	"strings"
)

// Identity names the list of dataset identifiers that rows of a
// task-embedding table stand for.
type Identity struct {
	Count  int    `json:"count"`
	SHA256 string `json:"sha256"`
}

// IdentityOf returns the identity of names, in their order (row 0 first).
func IdentityOf(names []string) Identity {
	h := sha256.New()
	var n [4]byte
	for _, s := range names {
		binary.LittleEndian.PutUint32(n[:], uint32(len(s)))
		h.Write(n[:])
		h.Write([]byte(s))
	}
	return Identity{Count: len(names), SHA256: hex.EncodeToString(h.Sum(nil))}
}

// Check returns an error when dataset is not the list the checkpoint was
// trained with, although the number of rows may be the same.
func (id Identity) Check(dataset Identity) error {
	if id == dataset {
		return nil
	}
	if id.Count == dataset.Count {
		return badf("checkpoint built for %d ids, dataset has %d others (hash of the id list %.12s, not %.12s); use --reset-task-embeddings",
			id.Count, dataset.Count, dataset.SHA256, id.SHA256)
	}
	return badf("checkpoint built for %d ids, dataset has %d; use --reset-task-embeddings", id.Count, dataset.Count)
}

// Meta describes a checkpoint. None of it is part of the digest.
type Meta struct {
	Kind     string          `json:"kind"`               // which model: hrm, lm
	Program  string          `json:"program,omitempty"`  // version that wrote it
	Config   json.RawMessage `json:"config,omitempty"`   // resolved settings, as a JSON object
	Identity *Identity       `json:"identity,omitempty"` // of the dataset; absent without task embeddings
	// DatasetHash is that of the training data's content; "" where the dataset
	// has none, or in checkpoints of older programs.
	DatasetHash string `json:"dataset_hash,omitempty"`
	// Tokenizer is that of the text, as package lm/tokens saves it; absent
	// where there is none.
	Tokenizer json.RawMessage `json:"tokenizer,omitempty"`
}

// ConfigChange is a key whose value differs between two configurations; Old and
// New are JSON, or "unset", or "none" of an empty list.
type ConfigChange struct{ Key, Old, New string }

func (c ConfigChange) String() string { return c.Key + ": " + c.Old + ", now " + c.New }

// ConfigChanges lists the keys whose value differs between two JSON objects,
// sorted; nested keys are joined with a dot.
func ConfigChanges(old, now json.RawMessage) ([]ConfigChange, error) {
	a, err := flatten(old)
	if err != nil {
		return nil, err
	}
	b, err := flatten(now)
	if err != nil {
		return nil, err
	}
	const unset = "unset"
	var out []ConfigChange
	for k, v := range a {
		if w, ok := b[k]; !ok {
			out = append(out, ConfigChange{k, v, unset})
		} else if v != w {
			out = append(out, ConfigChange{k, v, w})
		}
	}
	for k, w := range b {
		if _, ok := a[k]; !ok {
			out = append(out, ConfigChange{k, unset, w})
		}
	}
	slices.SortFunc(out, func(a, b ConfigChange) int { return strings.Compare(a.Key, b.Key) })
	return out, nil
}

// flatten maps dotted keys to the compact JSON of their values, lists without
// anything to "none".
func flatten(raw json.RawMessage) (map[string]string, error) {
	out := map[string]string{}
	if len(raw) == 0 {
		return out, nil
	}
	dec := json.NewDecoder(strings.NewReader(string(raw)))
	dec.UseNumber()
	var m map[string]any
	if err := dec.Decode(&m); err != nil {
		return nil, badf("read settings of a checkpoint: %w", err)
	}
	var walk func(prefix string, m map[string]any) error
	walk = func(prefix string, m map[string]any) error {
		for k, v := range m {
			if sub, ok := v.(map[string]any); ok {
				if err := walk(prefix+k+".", sub); err != nil {
					return err
				}
				continue
			}
			b, err := json.Marshal(v)
			if err != nil {
				return err
			}
			out[prefix+k] = string(b)
			if text := out[prefix+k]; text == "null" || text == "[]" { // a list that was never given, or is empty
				out[prefix+k] = "none"
			}
		}
		return nil
	}
	return out, walk("", m)
}
