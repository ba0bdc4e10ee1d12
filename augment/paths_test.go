package augment

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// A file where a folder is expected is the caller's mistake.
func TestFilesInsteadOfFolders(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, []byte("x"), 0o644))
	var in *InputError

	_, err := ReadManifest(file)
	require.ErrorAs(t, err, &in)
	require.ErrorIs(t, err, ErrNotDataset)
	require.ErrorContains(t, err, "it is a file, expected a folder")
	_, err = Verify(context.Background(), file, nil)
	require.ErrorAs(t, err, &in)
	_, err = OpenDataset(filepath.Join(file, "x"))
	require.ErrorAs(t, err, &in)

	c := load(t, someTasks(1))
	for _, out := range []string{file, filepath.Join(file, "x"), filepath.Join(file, "x", "y")} {
		_, err = Build(context.Background(), c, out, BuildOptions{Settings: small(1), Force: true})
		require.ErrorAs(t, err, &in, out)
		require.ErrorContains(t, err, "choose another --out")
	}
	b, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, "x", string(b))
}
