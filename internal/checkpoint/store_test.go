package checkpoint

import (
	"math"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"deeploop/internal/cli"
)

func names(t *testing.T, dir string) []string {
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	out := []string{}
	for _, e := range entries {
		out = append(out, e.Name())
	}
	return out
}

func TestStoreKeepsLastBestAndN(t *testing.T) {
	for keep, want := range [][]string{
		{"index.json", "step-00000002", "step-00000005"},
		{"index.json", "step-00000002", "step-00000004", "step-00000005"},
		{"index.json", "step-00000002", "step-00000003", "step-00000004", "step-00000005"},
	} {
		s := &Store{Dir: filepath.Join(t.TempDir(), Folder), Keep: keep}
		for step := 1; step <= 5; step++ {
			ref, err := s.Save(step, meta(), newToy(uint64(step)).set())
			require.NoError(t, err)
			if step == 2 {
				require.NoError(t, s.MarkEvaluated(step, &Best{Ref: ref, Metric: "acc", Value: .5}))
			}
		}
		require.Equal(t, want, names(t, s.Dir))
		x, err := s.Index()
		require.NoError(t, err)
		require.Equal(t, 5, x.Last.Step)
		require.Equal(t, Best{Ref{"step-00000002", 2}, "acc", .5}, *x.Best)
		require.Equal(t, 2, x.Evaluated)

		last, err := Find(filepath.Dir(s.Dir), LastSaved)
		require.NoError(t, err)
		require.Equal(t, s.Path(*x.Last), last)
		best, err := Find(s.Dir, BestSaved)
		require.NoError(t, err)
		require.Equal(t, s.Path(x.Best.Ref), best)
		step, ok := StepOf(best)
		require.True(t, ok)
		require.Equal(t, 2, step)
	}
}

func TestSavingAStepAgainReplacesIt(t *testing.T) {
	s := &Store{Dir: t.TempDir()}
	for seed := range uint64(3) {
		ref, err := s.Save(7, meta(), newToy(seed).set())
		require.NoError(t, err)
		got := newToy(9)
		require.NoError(t, open(t, s.Path(ref)).Load(got.set()))
		require.Equal(t, newToy(seed).w.Bytes(), got.w.Bytes())
		require.Len(t, names(t, s.Dir), 2)
	}
}

func TestFindTakesAnyPathOfACheckpoint(t *testing.T) {
	s, dir := saved(t, 1, 7)
	for _, path := range []string{filepath.Dir(s.Dir), s.Dir, dir, filepath.Join(dir, stateFile), filepath.Join(dir, "weights.safetensors")} {
		for _, which := range []Choice{LastSaved, BestSaved} {
			got, err := Find(path, which)
			require.NoError(t, err)
			require.Equal(t, dir, got)
			r, err := OpenFound(path, which)
			require.NoError(t, err)
			require.NoError(t, r.Close())
		}
	}
	_, err := Find(t.TempDir(), LastSaved)
	badInput(t, err, "holds none")
	_, err = Find(filepath.Join(t.TempDir(), "gone"), LastSaved)
	badInput(t, err, "gone")
	require.NoError(t, os.Remove(filepath.Join(s.Dir, indexFile)))
	got, err := Find(s.Dir, BestSaved)
	require.NoError(t, err)
	require.Equal(t, dir, got, "without an index the newest one is found")
}

// A training that removes a checkpoint takes its files one by one, after the
// index names the next.
func TestOpenFoundSkipsAFolderThatIsBeingRemoved(t *testing.T) {
	_, leaving := saved(t, 1, 7)
	_, next := saved(t, 2, 9)
	require.NoError(t, os.Remove(filepath.Join(leaving, "weights.safetensors")))
	found := []string{leaving, next}
	r, err := openFound(func() (string, error) {
		dir := found[0]
		found = found[1:]
		return dir, nil
	})
	require.NoError(t, err)
	defer r.Close()
	require.Equal(t, next, r.Dir())

	_, err = openFound(func() (string, error) { return leaving, nil })
	badInput(t, err, "weights.safetensors is missing")
}

// What is open stays readable when a training removes it.
func TestScanReadsAnOpenCheckpointThatIsGone(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("open files cannot be removed there")
	}
	_, dir := saved(t, 1, 7)
	r := open(t, dir)
	require.NoError(t, os.RemoveAll(dir))
	size := 0
	for _, tensor := range r.Tensors() {
		require.NoError(t, r.Scan(tensor.Group, tensor.Name, func(part []byte) { size += len(part) }))
	}
	require.Positive(t, size)
}

// What a save interrupted at any moment leaves is removed, and the previous
// checkpoint stays in force.
func TestCleanRemovesLeftovers(t *testing.T) {
	s, dir := saved(t, 1, 7)
	before := digest(t, dir)
	other, complete := saved(t, 2, 9)
	require.NoError(t, os.Rename(complete, filepath.Join(s.Dir, "step-00000009"))) // killed before the index
	require.NoError(t, os.MkdirAll(filepath.Join(s.Dir, ".tmp-step-00000010"), 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(s.Dir, ".tmp-step-00000010", "weights.safetensors"), []byte("half"), 0o644))
	require.NoError(t, os.WriteFile(filepath.Join(s.Dir, ".tmp-index.json"), []byte("{"), 0o644))
	require.NoError(t, os.WriteFile(filepath.Join(s.Dir, "notes.txt"), []byte("mine"), 0o644))
	require.NoError(t, s.Clean())
	require.Equal(t, []string{"index.json", "notes.txt", "step-00000007"}, names(t, s.Dir))
	require.Equal(t, before, digest(t, dir))

	// killed before the very first index: the complete checkpoint is adopted
	first := &Store{Dir: t.TempDir()}
	require.NoError(t, os.Rename(dir, filepath.Join(first.Dir, "step-00000007")))
	require.NoError(t, first.Clean())
	x, err := first.Index()
	require.NoError(t, err)
	require.Equal(t, 7, x.Last.Step)

	require.NoError(t, (&Store{Dir: filepath.Join(other.Dir, "never")}).Clean(), "no folder, nothing to do")
}

func TestFullDiskIsFoundBeforeWriting(t *testing.T) {
	s, dir := saved(t, 1, 7)
	s.FreeBytes = func(string) (uint64, error) { return 5e5, nil }
	big := &Set{}
	big.Tensor(Weights, "w", []int{1 << 20}, make([]float32, 1<<20))
	_, err := s.Save(8, meta(), big)
	require.ErrorContains(t, err, "save checkpoint of step 8")
	require.ErrorContains(t, err, "needs 5.2 MB")
	require.ErrorContains(t, err, "0.5 MB free")
	require.Equal(t, cli.ExitFailure, cli.ExitCode(err))
	require.Equal(t, []string{"index.json", filepath.Base(dir)}, names(t, s.Dir))
	s.FreeBytes = func(string) (uint64, error) { return 1.9e9, nil }
	require.NoError(t, s.Room(big))
	s.FreeBytes = nil
	require.NoError(t, s.Room(&Set{}), "asks the system")
}

func TestFailedSaveLeavesThePreviousOne(t *testing.T) {
	s, dir := saved(t, 1, 7)
	bad := newToy(2).set()
	nan := math.NaN()
	bad.Value(Carry, "nan", &nan)
	_, err := s.Save(8, meta(), bad)
	require.ErrorContains(t, err, "carry/nan")
	require.Equal(t, []string{"index.json", filepath.Base(dir)}, names(t, s.Dir))
	last, err := Find(s.Dir, LastSaved)
	require.NoError(t, err)
	require.Equal(t, dir, last)
}

func TestDamagedIndexSaysWhatToDo(t *testing.T) {
	s, dir := saved(t, 1, 7)
	path := filepath.Join(s.Dir, indexFile)
	require.NoError(t, os.WriteFile(path, []byte(`{"last": {"na`), 0o644))
	err := s.Clean()
	badInput(t, err, path, "remove it")
	require.NoError(t, os.Remove(path))
	require.NoError(t, s.Clean())
	last, err := Find(s.Dir, LastSaved)
	require.NoError(t, err)
	require.Equal(t, dir, last)
}
