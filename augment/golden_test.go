package augment

import (
	"context"
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"deeploop/arc"
	"deeploop/internal/goldentest"
)

// DEEPLOOP_LONG_TESTS=1 also runs the builds with more than 100 copies, which
// write some 7 GB below TMPDIR and delete them.
func long() bool { return os.Getenv("DEEPLOOP_LONG_TESTS") == "1" }

type goldenBuild struct {
	Corpora   string `json:"corpora"`
	NumAug    int    `json:"num_aug"`
	Seed      uint32 `json:"seed"`
	DestOrder string `json:"dest_order"`
	MaxGrid   int    `json:"max_grid"` // 0: 30
	Files     map[string]struct {
		SHA256File string `json:"sha256_file"`
		Bytes      int64  `json:"bytes"`
	} `json:"files"`
	Identifiers int            `json:"num_puzzle_identifiers"`
	Next        [4]uint32      `json:"rng_next_u32_after_build"`
	NotFull     map[string]int `json:"augmentation_not_full"`
}

var corpusFolder = map[string]string{"ARC-1": "arc-agi-1", "ARC-2": "arc-agi-2", "ConceptARC": "concept-arc/corpus"}

func TestGoldenBuilds(t *testing.T) {
	data := goldentest.ARCData(t)
	goldentest.Each(t, goldentest.Files(t, "dataset_hashes*.json"), func(t *testing.T, path string) {
		raw, err := os.ReadFile(path)
		require.NoError(t, err)
		var builds map[string]goldenBuild
		require.NoError(t, json.Unmarshal(raw, &builds))
		require.NotEmpty(t, builds)
		for _, name := range slices.Sorted(maps.Keys(builds)) {
			t.Run(name, func(t *testing.T) {
				b := builds[name]
				if b.NumAug > 100 && !long() {
					t.Skipf("%d copies a task take minutes and some 7 GB: set DEEPLOOP_LONG_TESTS=1 or run make test-long", b.NumAug)
				}
				checkGoldenBuild(t, data, b)
			})
		}
	})
}

func checkGoldenBuild(t *testing.T, data string, b goldenBuild) {
	var inputs []string
	for _, c := range strings.Split(b.Corpora, "+") {
		require.Contains(t, corpusFolder, c)
		inputs = append(inputs, filepath.Join(data, corpusFolder[c]))
	}
	notFull := checkRecordedBuild(t, inputs, b)
	if len(b.NotFull) > 0 || len(notFull) > 0 {
		require.Equal(t, b.NotFull, notFull)
	}
}

// The reference builder's recorded output over our own tasks, so that a bare
// clone tests itself.
func TestReferenceBuilds(t *testing.T) {
	raw, err := os.ReadFile("testdata/reference/hashes.json")
	require.NoError(t, err)
	var builds map[string]goldenBuild
	require.NoError(t, json.Unmarshal(raw, &builds))
	require.NotEmpty(t, builds)
	for name, b := range builds {
		t.Run(name, func(t *testing.T) { checkRecordedBuild(t, []string{"testdata/reference/source"}, b) })
	}
}

// checkRecordedBuild builds a dataset, compares it with the recorded one, and
// returns the tasks that stayed short.
func checkRecordedBuild(t *testing.T, inputs []string, b goldenBuild) map[string]int {
	corpus, err := arc.Load(inputs...)
	require.NoError(t, err)
	s := Settings{NumAug: b.NumAug, Seed: b.Seed, MaxGrid: arc.MaxSide, DestOrder: b.DestOrder}
	if b.MaxGrid != 0 {
		s.MaxGrid = b.MaxGrid
	}
	out := filepath.Join(t.TempDir(), "set")
	m, err := Build(context.Background(), corpus, out, BuildOptions{Settings: s})
	require.NoError(t, err)
	require.Equal(t, b.Next, m.RNGNextUint32)
	require.Equal(t, b.Identifiers, m.Counts.Identifiers)
	notFull := map[string]int{}
	for _, s := range m.ShortTasks {
		notFull[s.ID] = s.Copies
	}
	require.NotEmpty(t, b.Files)
	for name, want := range b.Files {
		require.Equal(t, want.Bytes, m.Files[name].Bytes, name)
		require.Equal(t, want.SHA256File, m.Files[name].SHA256, name)
	}
	// The hashes are those of what is on the disk.
	problems, err := Verify(context.Background(), out, nil)
	require.NoError(t, err)
	require.Empty(t, problems)
	return notFull
}

func TestGoldenFixture(t *testing.T) {
	goldentest.Each(t, goldentest.Files(t, "dataset_fixture*"), func(t *testing.T, dir string) {
		var s Settings
		raw, err := os.ReadFile(filepath.Join(dir, "settings.json"))
		require.NoError(t, err)
		require.NoError(t, json.Unmarshal(raw, &s))
		if s.MaxGrid == 0 {
			s.MaxGrid = arc.MaxSide
		}
		corpus, err := arc.Load(filepath.Join(dir, "source"))
		require.NoError(t, err)
		out := filepath.Join(t.TempDir(), "set")
		_, err = Build(context.Background(), corpus, out, BuildOptions{Settings: s})
		require.NoError(t, err)
		files := 0
		for _, part := range []string{"", "train", "test"} {
			for _, want := range goldentest.Glob(t, filepath.Join(dir, part), "*.*") {
				if filepath.Base(want) == "settings.json" {
					continue
				}
				files++
				a, err := os.ReadFile(want)
				require.NoError(t, err)
				b, err := os.ReadFile(filepath.Join(out, part, filepath.Base(want)))
				require.NoError(t, err)
				require.Equal(t, a, b, want)
			}
		}
		require.Equal(t, 13, files)
	})
}
