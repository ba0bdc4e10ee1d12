package staging

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func put(t *testing.T, dir, text string) {
	t.Helper()
	require.NoError(t, os.MkdirAll(dir, 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "file"), []byte(text), 0o644))
}

func holds(t *testing.T, dir, text string) {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(dir, "file"))
	require.NoError(t, err)
	require.Equal(t, text, string(b))
}

func only(t *testing.T, parent string, names ...string) {
	t.Helper()
	entries, err := os.ReadDir(parent)
	require.NoError(t, err)
	var have []string
	for _, e := range entries {
		have = append(have, e.Name())
	}
	require.ElementsMatch(t, names, have)
}

// Nothing is at the target before Publish and nothing beside it after Remove,
// whatever was there.
func TestPublish(t *testing.T) {
	for name, before := range map[string]func(t *testing.T, out string){
		"nothing":          func(*testing.T, string) {},
		"empty":            func(t *testing.T, out string) { require.NoError(t, os.MkdirAll(out, 0o755)) },
		"full":             func(t *testing.T, out string) { put(t, out, "old") },
		"full, by renames": func(t *testing.T, out string) { put(t, out, "old") },
	} {
		t.Run(name, func(t *testing.T) {
			parent := filepath.Join(t.TempDir(), "new", "parent")
			out := filepath.Join(parent, "set")
			before(t, out)
			f, err := New(out)
			require.NoError(t, err)
			put(t, f.Path(), "new")
			if name == "full" {
				holds(t, out, "old")
			}
			if name == "full, by renames" {
				require.NoError(t, f.swapByRenames())
			} else {
				require.NoError(t, f.Publish())
			}
			holds(t, out, "new")
			require.NoError(t, f.Remove())
			holds(t, out, "new")
			only(t, parent, "set")
		})
	}
}

func TestRemoveDropsWhatWasNotPublished(t *testing.T) {
	parent := t.TempDir()
	f, err := New(filepath.Join(parent, "set"))
	require.NoError(t, err)
	put(t, f.Path(), "new")
	require.NoError(t, f.Remove())
	only(t, parent)
}

// Hidden folders of dead processes are removed, those of living ones stay, and
// a folder that a dead one had moved away comes back.
func TestRemoveStale(t *testing.T) {
	parent := t.TempDir()
	out := filepath.Join(parent, "set")
	alive, err := New(out)
	require.NoError(t, err)
	dead, killed, other := filepath.Join(parent, prefix(out)+"dead"), filepath.Join(parent, prefix(out)+"killed"), filepath.Join(parent, ".other.building-1")
	put(t, filepath.Join(dead, "new"), "half")
	put(t, filepath.Join(killed, "old"), "old")
	put(t, other, "another's")

	RemoveStale(out)
	holds(t, out, "old")
	only(t, parent, "set", filepath.Base(alive.dir), filepath.Base(other))

	put(t, filepath.Join(killed, "old"), "older")
	f, err := New(out)
	require.NoError(t, err)
	holds(t, out, "old") // something is there: nothing comes back
	require.NoDirExists(t, killed)
	require.NoError(t, f.Remove())
	require.NoError(t, alive.Remove())
	only(t, parent, "set", filepath.Base(other))
}

func TestNewBelowAFile(t *testing.T) {
	parent := t.TempDir()
	put(t, parent, "mine")
	_, err := New(filepath.Join(parent, "file", "set"))
	require.ErrorContains(t, err, "create output folder")
}
