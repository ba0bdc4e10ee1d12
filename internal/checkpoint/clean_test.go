package checkpoint

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// several returns a store with the checkpoints of steps 1 to 3.
func several(t *testing.T) *Store {
	s := &Store{Dir: filepath.Join(t.TempDir(), Folder), Keep: 5}
	for step := 1; step <= 3; step++ {
		_, err := s.Save(step, meta(), newToy(uint64(step)).set())
		require.NoError(t, err)
	}
	return s
}

func put(t *testing.T, content string, parts ...string) {
	path := filepath.Join(parts...)
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
	require.NoError(t, os.WriteFile(path, []byte(content), 0o644))
}

// A damaged checkpoint is no reason not to take the newest sound one, and
// without an index it is not removed either.
func TestDamagedCheckpointsAreSkipped(t *testing.T) {
	s := several(t)
	require.NoError(t, os.Remove(filepath.Join(s.Dir, indexFile)))
	put(t, "{", s.Dir, "step-00000001", stateFile)
	require.NoError(t, os.Remove(filepath.Join(s.Dir, "step-00000003", "weights.safetensors")))
	require.NoError(t, s.Clean())
	x, err := s.Index()
	require.NoError(t, err)
	require.Equal(t, Ref{"step-00000002", 2}, *x.Last)
	require.Empty(t, x.Kept)
	require.Len(t, names(t, s.Dir), 4)
}

// Other programs name their folders step-N too.
func TestForeignStepFoldersStay(t *testing.T) {
	s := several(t)
	put(t, "theirs", s.Dir, "step-100", "model.safetensors")
	require.NoError(t, s.Clean())
	_, err := s.Save(4, meta(), newToy(4).set())
	require.NoError(t, err)
	require.FileExists(t, filepath.Join(s.Dir, "step-100", "model.safetensors"))
	require.NoError(t, s.Clear())
	require.Equal(t, []string{"step-100"}, names(t, s.Dir))

	s = several(t)
	require.True(t, s.Holds())
	require.NoError(t, s.Clear())
	require.NoDirExists(t, s.Dir)
	require.False(t, s.Holds())
}

// An old checkpoint that another process holds open, as on Windows, is no
// reason to stop; the next save removes it.
func TestWhatCannotBeRemovedWaits(t *testing.T) {
	s := several(t)
	s.Keep = 0
	locked := s.Path(Ref{Name: "step-00000001"})
	s.removeAll = func(path string) error {
		if path == locked {
			return &os.PathError{Op: "unlink", Path: path, Err: os.ErrPermission}
		}
		return os.RemoveAll(path)
	}
	_, err := s.Save(4, meta(), newToy(4).set())
	require.NoError(t, err)
	require.NoError(t, s.MarkEvaluated(4, nil))
	require.NoError(t, s.Clean())
	require.Equal(t, []string{"index.json", "step-00000001", "step-00000004"}, names(t, s.Dir), "the others are removed")
	require.ErrorIs(t, s.Clear(), os.ErrPermission, "to replace a run all must go")

	s.removeAll = nil
	_, err = s.Save(5, meta(), newToy(5).set())
	require.NoError(t, err)
	require.Equal(t, []string{"index.json", "step-00000005"}, names(t, s.Dir))
}

func TestIndexNamesAreChecked(t *testing.T) {
	for _, index := range []string{
		`{"format_version":1,"last":{"name":"../../elsewhere","step":1}}`,
		`{"format_version":1,"last":{"name":"step-1/../..","step":1}}`,
		`{"format_version":1,"best":{"name":"/etc","step":1}}`,
		`{"format_version":1,"kept":[{"name":"","step":1}]}`,
		`{"name":"some other program's"}`,
	} {
		s := several(t)
		put(t, index, s.Dir, indexFile)
		_, err := s.Index()
		badInput(t, err, filepath.Join(s.Dir, indexFile))
		badInput(t, s.Clean())
		require.Len(t, names(t, s.Dir), 4, "nothing is removed")
	}
}

// Errors about a damaged last checkpoint name the others; others do not.
func TestOpenLastAdvises(t *testing.T) {
	for name, damage := range map[string]func(dir string){
		"it does not exist":     func(dir string) { require.NoError(t, os.RemoveAll(dir)) },
		"state.json is missing": func(dir string) { require.NoError(t, os.Remove(filepath.Join(dir, stateFile))) },
		"cut short":             func(dir string) { put(t, "{", dir, stateFile) },
	} {
		s := several(t)
		damage(s.Path(Ref{Name: "step-00000003"}))
		require.NoError(t, os.RemoveAll(s.Path(Ref{Name: "step-00000001"})))
		_, err := s.OpenLast()
		badInput(t, err, name, "other checkpoints of this run: "+s.Path(Ref{Name: "step-00000002"})+" (")
		require.True(t, Damaged(err))
		require.NotContains(t, err.Error(), "step-00000001")
	}
	s := several(t)
	path := filepath.Join(s.Dir, "step-00000003", stateFile)
	b, err := os.ReadFile(path)
	require.NoError(t, err)
	put(t, strings.Replace(string(b), `"format_version": 1`, `"format_version": 99`, 1), path)
	_, err = s.OpenLast()
	badInput(t, err, "newer program")
	require.NotContains(t, err.Error(), "other checkpoints")

	s, dir := saved(t, 1, 7)
	require.NoError(t, os.RemoveAll(dir))
	_, err = s.OpenLast()
	badInput(t, err, "no other checkpoint")

	r, err := (&Store{Dir: t.TempDir()}).OpenLast()
	require.NoError(t, err)
	require.Nil(t, r)
}

func TestForgetBest(t *testing.T) {
	s, dir := saved(t, 1, 7)
	x, err := s.Index()
	require.NoError(t, err)
	require.NoError(t, s.MarkEvaluated(7, &Best{Ref: *x.Last, Metric: "acc", Value: .5}))
	s.ForgetBest = true
	_, err = s.Save(8, meta(), newToy(2).set())
	require.NoError(t, err)
	x, err = s.Index()
	require.NoError(t, err)
	require.Nil(t, x.Best)
	require.False(t, s.ForgetBest)
	require.NoDirExists(t, dir)
}

// Of older programs there are checkpoints without the dataset's hash; where it
// is, it is no part of the digest.
func TestDatasetHashIsOptional(t *testing.T) {
	s, dir := saved(t, 1, 7)
	require.Empty(t, open(t, dir).Meta().DatasetHash)
	require.NotContains(t, readText(t, dir, stateFile), "dataset_hash")
	before := digest(t, dir)
	m := meta()
	m.DatasetHash = "abc"
	ref, err := s.Save(7, m, newToy(1).set())
	require.NoError(t, err)
	require.Equal(t, "abc", open(t, s.Path(ref)).Meta().DatasetHash)
	require.Equal(t, before, digest(t, s.Path(ref)))
}

func readText(t *testing.T, parts ...string) string {
	b, err := os.ReadFile(filepath.Join(parts...))
	require.NoError(t, err)
	return string(b)
}
