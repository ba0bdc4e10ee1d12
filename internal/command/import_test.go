package command

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"deeploop/internal/checkpoint"
)

// A checkpoint that fails behind its tensors leaves neither files nor folders;
// one that was there stays.
func TestImportedThatFailsLeavesNothing(t *testing.T) {
	t.Chdir(t.TempDir())
	var set checkpoint.Set
	set.Tensor(checkpoint.Weights, "w", []int{2}, []float32{1, 2})
	i := Imported{Run: filepath.Join("runs", "new", "a"), State: &set, Meta: checkpoint.Meta{Kind: "toy", Config: []byte(`{`)}, Config: []byte("x: 1\n")}
	_, err := i.Save()
	require.ErrorContains(t, err, "save checkpoint of step 0")
	require.NoDirExists(t, "runs")

	i.Run = "there"
	require.NoError(t, os.Mkdir(i.Run, 0o755))
	_, err = i.Save()
	require.Error(t, err)
	left, err := os.ReadDir(i.Run)
	require.NoError(t, err)
	require.Empty(t, left)

	i.Meta.Config = []byte(`{}`)
	where, err := i.Save()
	require.NoError(t, err)
	require.FileExists(t, filepath.Join(where, "state.json"))
	require.FileExists(t, filepath.Join("there", ConfigFile))
	before, err := os.ReadFile(filepath.Join(where, "state.json"))
	require.NoError(t, err)

	_, err = i.Save() // a run is never replaced, nor cleared
	require.ErrorContains(t, err, "exists already")
	after, err := os.ReadFile(filepath.Join(where, "state.json"))
	require.NoError(t, err)
	require.Equal(t, before, after)
}
