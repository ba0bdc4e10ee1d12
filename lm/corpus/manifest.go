package corpus

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"deeploop/lm/tokens"
)

// Names of a dataset's files besides its shards.
const (
	ManifestName  = "manifest.json"
	TokenizerName = "tokenizer.json"
)

const (
	manifestFormat  = "deeploop text dataset"
	manifestVersion = 1
)

// Manifest describes a dataset folder. It is written last: a folder without it
// is not a dataset.
type Manifest struct {
	Format  string `json:"format"`
	Version int    `json:"version"`
	Program string `json:"program"` // the version that wrote it
	// DatasetHash is the SHA-256 over the names and SHA-256 of all files but
	// this one: equal hashes mean equal tokens.
	DatasetHash string     `json:"dataset_hash"`
	Tokenizer   string     `json:"tokenizer"`
	VocabSize   int        `json:"vocab_size"`
	Separator   int32      `json:"separator"` // -1: none
	Train       Counts     `json:"train"`
	Val         Counts     `json:"val"`
	Settings    Settings   `json:"settings"`
	Inputs      []Input    `json:"inputs"`
	Files       []FileInfo `json:"files"` // shards in order, then the tokenizer
	// EmptyDocuments have no text and are left out.
	EmptyDocuments int64 `json:"empty_documents"`
	// Warnings for a person, one line each.
	Warnings []string `json:"warnings,omitempty"`
}

// Counts are the sizes of a split.
type Counts struct {
	// Documents, or parts of one: a single one is in both splits.
	Documents int64 `json:"documents"`
	Bytes     int64 `json:"bytes"`  // of text
	Tokens    int64 `json:"tokens"` // separators included
}

// Input is one file or folder that was read.
type Input struct {
	Name      string `json:"name"` // its last element
	Files     int    `json:"files"`
	Bytes     int64  `json:"bytes"`     // as stored
	Documents int64  `json:"documents"` // empty ones included
}

// FileInfo is a file of the dataset.
type FileInfo struct {
	Name   string `json:"name"`
	Bytes  int64  `json:"bytes"`
	SHA256 string `json:"sha256"`
	Tokens int64  `json:"tokens,omitempty"` // of a shard
}

// datasetHash is over "NAME SHA256\n", by name.
func datasetHash(files []FileInfo) string {
	lines := map[string]string{}
	for _, f := range files {
		lines[f.Name] = f.Name + " " + f.SHA256 + "\n"
	}
	h := sha256.New()
	for _, name := range slices.Sorted(maps.Keys(lines)) {
		io.WriteString(h, lines[name])
	}
	return hex.EncodeToString(h.Sum(nil))
}

// ErrNotDataset marks a folder without a manifest of this package.
var ErrNotDataset = errors.New("not a dataset")

// ReadManifest reads the manifest of a dataset folder. The error wraps
// ErrNotDataset when the folder has none.
func ReadManifest(dir string) (*Manifest, error) {
	raw, err := os.ReadFile(filepath.Join(dir, ManifestName))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, inputErrorf("open dataset %s: no %s in it, so it is %w of lm prepare or was not finished; run lm prepare", dir, ManifestName, ErrNotDataset)
	}
	if err != nil {
		return nil, inputErrorf("open dataset: %w", err)
	}
	var m Manifest
	if err := json.Unmarshal(raw, &m); err != nil {
		return nil, inputErrorf("open dataset %s: %w: %s: %v", dir, ErrNotDataset, ManifestName, err)
	}
	if m.Format != manifestFormat {
		return nil, inputErrorf("open dataset %s: %w: the format in %s is %q, expected %q", dir, ErrNotDataset, ManifestName, m.Format, manifestFormat)
	}
	if m.Version != manifestVersion {
		return nil, inputErrorf("open dataset %s: version is %d, expected %d; prepare it again with this program", dir, m.Version, manifestVersion)
	}
	return &m, nil
}

// readTokenizer reads the tokenizer of a folder.
func readTokenizer(dir string) (tokens.Tokenizer, error) {
	f, err := os.Open(filepath.Join(dir, TokenizerName))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	t, err := tokens.Load(f)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", f.Name(), err)
	}
	return t, nil
}

func hashBytes(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}
