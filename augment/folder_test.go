package augment

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestExistingFolders(t *testing.T) {
	c := load(t, someTasks(2))
	ctx := context.Background()
	try := func(out string, force bool) error {
		_, err := Build(ctx, c, out, BuildOptions{Settings: small(1), Force: force})
		return err
	}
	parent := t.TempDir()

	empty := filepath.Join(parent, "empty")
	require.NoError(t, os.Mkdir(empty, 0o755))
	require.NoError(t, try(empty, false))
	require.ErrorContains(t, try(empty, false), "--force")
	require.NoError(t, try(empty, true))

	link := filepath.Join(parent, "link")
	if os.Symlink(empty, link) == nil {
		require.NoError(t, try(link, true))
		info, err := os.Lstat(link)
		require.NoError(t, err)
		require.NotZero(t, info.Mode()&os.ModeSymlink, "the link stays, its folder is replaced")
	}

	note := filepath.Join(empty, "notes.txt")
	require.NoError(t, os.WriteFile(note, []byte("mine"), 0o644))
	require.ErrorContains(t, try(empty, true), "notes.txt")
	require.FileExists(t, note)

	foreign := filepath.Join(parent, "foreign")
	require.NoError(t, os.MkdirAll(filepath.Join(foreign, "train"), 0o755))
	for _, force := range []bool{false, true} {
		require.ErrorContains(t, try(foreign, force), "not a dataset")
		require.ErrorContains(t, try(note, force), "not a folder")
	}
	require.DirExists(t, filepath.Join(foreign, "train"))
	entries, err := os.ReadDir(parent)
	require.NoError(t, err)
	for _, e := range entries {
		require.NotEqual(t, '.', rune(e.Name()[0]), "%s is left behind", e.Name())
	}
}
