package augment

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sort"

	"deeploop/arc"
)

// ManifestName is written last: a folder without it is not a dataset.
const ManifestName = "manifest.json"

const (
	manifestFormat  = "deeploop ARC dataset"
	manifestVersion = 1
)

// Manifest describes a dataset folder.
type Manifest struct {
	Format   string   `json:"format"`
	Version  int      `json:"version"`
	Settings Settings `json:"settings"`
	// DatasetHash is the SHA-256 over the names and SHA-256 of all files'
	// contents, uncompressed: equal hashes mean equal datasets.
	DatasetHash string `json:"dataset_hash"`
	Counts      Counts `json:"counts"`
	// RNGNextUint32 are the raw outputs that would follow the last draw.
	RNGNextUint32 [4]uint32 `json:"rng_next_u32"`
	// Files by their name in the folder, with forward slashes.
	Files map[string]FileInfo `json:"files"`
	// Tasks in the order they were drawn.
	Tasks []TaskInfo `json:"tasks"`
	// ShortTasks have fewer copies than wanted, mostly since they have no more.
	ShortTasks []ShortTask `json:"short_tasks"`
	// SkippedTasks have a grid larger than the canvas.
	SkippedTasks []SkippedTask `json:"skipped_tasks"`
	// Leaks are held-out test pairs that are also trained on.
	Leaks []Leak `json:"leaks"`
	// TestInputInTrain are test inputs that are also inputs of their own
	// task's demonstrations.
	TestInputInTrain []PairRef `json:"test_input_in_train"`
	// SharedIDs are ids that several tasks have. As in the reference they share
	// the identifier of the unaugmented puzzle, so one task embedding.
	SharedIDs []SharedID `json:"shared_ids"`
	// Warnings for a person, one line each.
	Warnings []string `json:"warnings"`
	// Sources are the files read, below their common folder.
	Sources []arc.Source `json:"sources"`
}

// Counts are the sizes of a dataset.
type Counts struct {
	Tasks           int         `json:"tasks"`
	HeldOutTasks    int         `json:"held_out_tasks"`
	Identifiers     int         `json:"identifiers"` // with the blank one
	TestPairs       int         `json:"test_pairs"`  // held out, unaugmented
	UnlabelledTests int         `json:"unlabelled_tests"`
	Train           SplitCounts `json:"train"`
	Test            SplitCounts `json:"test"`
}

// SplitCounts are the sizes of a split.
type SplitCounts struct {
	Groups   int `json:"groups"`
	Puzzles  int `json:"puzzles"`
	Examples int `json:"examples"`
}

// FileInfo is the size and hash of a file's content. Stored* are those of the
// file itself where it is compressed.
type FileInfo struct {
	Bytes        int64  `json:"bytes"`
	SHA256       string `json:"sha256"`
	StoredBytes  int64  `json:"stored_bytes,omitempty"`
	StoredSHA256 string `json:"stored_sha256,omitempty"`
}

// onDisk returns the size and hash of the file itself.
func (f FileInfo) onDisk() (int64, string) {
	if f.StoredSHA256 != "" {
		return f.StoredBytes, f.StoredSHA256
	}
	return f.Bytes, f.SHA256
}

// TaskInfo is one task of a dataset.
type TaskInfo struct {
	ID      string `json:"id"`
	Split   string `json:"split"`
	File    string `json:"file"`
	HeldOut bool   `json:"held_out"`
	// Copies counts the puzzles, the task itself included.
	Copies int `json:"copies"`
}

// ShortTask has fewer copies than wanted.
type ShortTask struct {
	ID     string `json:"id"`
	Copies int    `json:"copies"` // the task itself included
	Wanted int    `json:"wanted"`
}

// SkippedTask does not fit the canvas.
type SkippedTask struct {
	ID   string `json:"id"`
	File string `json:"file"`
	Rows int    `json:"rows"` // of its largest grid
	Cols int    `json:"cols"`
}

// PairRef names a pair of a task.
type PairRef struct {
	Task    string `json:"task"`
	File    string `json:"file"`
	Section string `json:"section"` // train or test
	Index   int    `json:"index"`
}

func (p PairRef) String() string { return fmt.Sprintf("%s %s[%d]", p.Task, p.Section, p.Index) }

// Leak is a held-out test pair that equals a pair trained on.
type Leak struct {
	Test  PairRef `json:"test"`
	Train PairRef `json:"train"`
}

// SharedID is an id that several tasks have.
type SharedID struct {
	ID        string   `json:"id"`
	Files     []string `json:"files"`
	Identical bool     `json:"identical"` // the same pairs, in any order
}

// datasetHash is over "NAME SHA256\n" of the contents, by name; compressed
// files count under their uncompressed name.
func datasetHash(files map[string]FileInfo) string {
	lines := make([]string, 0, len(files))
	for name, f := range files {
		lines = append(lines, plainName(name)+" "+f.SHA256+"\n")
	}
	sort.Strings(lines)
	h := sha256.New()
	for _, l := range lines {
		io.WriteString(h, l)
	}
	return hex.EncodeToString(h.Sum(nil))
}

// ErrNotDataset marks a folder without a manifest of this package.
var ErrNotDataset = errors.New("not a dataset")

// ReadManifest reads the manifest of a dataset folder. The error wraps
// ErrNotDataset when the folder has none.
func ReadManifest(dir string) (*Manifest, error) {
	path := filepath.Join(dir, ManifestName)
	raw, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, inputErrorf("open dataset %s: no %s in it, so it is %w of build-data or was not finished; run hrm build-data",
			dir, ManifestName, ErrNotDataset)
	}
	if info, e := os.Stat(dir); e == nil && !info.IsDir() {
		return nil, inputErrorf("open dataset %s: %w: it is a file, expected a folder that hrm build-data made", dir, ErrNotDataset)
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
		return nil, inputErrorf("open dataset %s: version is %d, expected %d; build it again with this program", dir, m.Version, manifestVersion)
	}
	return &m, nil
}
