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

// Hidden folders of dead processes are removed, those of live ones stay, and a
// dataset that a dead one had moved away comes back.
func TestStaleFolders(t *testing.T) {
	c := load(t, someTasks(1))
	parent := t.TempDir()
	out := filepath.Join(parent, "set")

	alive, err := newStaging(out)
	require.NoError(t, err)
	dead := filepath.Join(parent, stagingPrefix(out)+"dead")
	require.NoError(t, os.MkdirAll(filepath.Join(dead, "dataset", "train"), 0o755))
	other := filepath.Join(parent, ".other.building-1")
	require.NoError(t, os.Mkdir(other, 0o755))
	killed := filepath.Join(parent, stagingPrefix(out)+"killed")
	require.NoError(t, os.Mkdir(killed, 0o755))
	require.NoError(t, os.Rename(mustBuild(t, c, small(3)), filepath.Join(killed, "old")))

	_, err = Build(context.Background(), c, filepath.Join(parent, "set"), BuildOptions{Settings: small(1), Force: true})
	require.NoError(t, err)
	require.NoDirExists(t, dead)
	require.NoDirExists(t, killed)
	require.DirExists(t, other)
	require.DirExists(t, alive.dataset())
	m, err := ReadManifest(out)
	require.NoError(t, err)
	require.Equal(t, 1, m.Settings.NumAug)

	require.NoError(t, alive.remove())
	require.NoDirExists(t, alive.dir)

	require.NoError(t, os.MkdirAll(killed, 0o755))
	require.NoError(t, os.Rename(out, filepath.Join(killed, "old")))
	removeStale(out)
	m, err = ReadManifest(out)
	require.NoError(t, err)
	require.Equal(t, 1, m.Settings.NumAug, "the old dataset is back")
}

// Where folders cannot be swapped in one step two renames do it.
func TestReplaceWithoutExchange(t *testing.T) {
	c := load(t, someTasks(1))
	out := mustBuild(t, c, small(1))
	s, err := newStaging(out)
	require.NoError(t, err)
	require.NoError(t, os.Remove(s.dataset()))
	require.NoError(t, os.Rename(mustBuild(t, c, small(2)), s.dataset()))
	require.NoError(t, s.swapByRenames(out))
	require.NoError(t, s.remove())
	m, err := ReadManifest(out)
	require.NoError(t, err)
	require.Equal(t, 2, m.Settings.NumAug)
}
