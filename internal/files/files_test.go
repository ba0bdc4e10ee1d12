package files

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

func content(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	require.NoError(t, err)
	return string(b)
}

func names(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	var all []string
	for _, e := range entries {
		all = append(all, e.Name())
	}
	return all
}

func TestWriteIsWholeOrNotAtAll(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "a")
	require.NoError(t, WriteFile(path, []byte("one")))
	require.NoError(t, os.Chmod(path, 0o640))
	broken := errors.New("broken")
	err := Write(path, func(w io.Writer) error {
		_, err := w.Write([]byte("tw"))
		require.NoError(t, err)
		require.Equal(t, "one", content(t, path))
		return broken
	})
	require.ErrorIs(t, err, broken)
	require.Equal(t, "one", content(t, path))
	require.NoError(t, WriteFile(path, []byte("two")))
	require.Equal(t, "two", content(t, path))
	require.Equal(t, []string{"a"}, names(t, dir), "no temporary file stays")
	if runtime.GOOS != "windows" {
		info, err := os.Stat(path)
		require.NoError(t, err)
		require.Equal(t, os.FileMode(0o640), info.Mode().Perm(), "permissions stay")
	}
	require.Error(t, WriteFile(filepath.Join(dir, "no", "a"), nil))
	require.ErrorContains(t, WriteFile(dir, nil), "is a folder")
}

func TestWritersOfOnePathDoNotMix(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a")
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			b := make([]byte, 1<<16)
			for j := range b {
				b[j] = byte('a' + i)
			}
			if err := WriteFile(path, b); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	got := content(t, path)
	require.Len(t, got, 1<<16)
	for _, c := range got {
		require.Equal(t, rune(got[0]), c)
	}
}

// Names that killed processes left are passed over.
func TestTemporaryNamesAreNew(t *testing.T) {
	dir := t.TempDir()
	for i := range uint64(5) {
		name := fmt.Sprintf("%s%d-%d", TempPrefix, os.Getpid(), created.Load()+1+i)
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte("left"), 0o644))
	}
	require.NoError(t, WriteFile(filepath.Join(dir, "a"), []byte("new")))
	require.Equal(t, "new", content(t, filepath.Join(dir, "a")))
	require.Len(t, names(t, dir), 6)
}

func TestLinksAreFollowed(t *testing.T) {
	dir := t.TempDir()
	at := func(parts ...string) string { return filepath.Join(append([]string{dir}, parts...)...) }
	require.NoError(t, os.MkdirAll(at("deep", "in"), 0o755))
	require.NoError(t, os.WriteFile(at("real"), []byte("old"), 0o644))
	if err := os.Symlink("real", at("link")); err != nil {
		t.Log("links cannot be made here:", err)
		return
	}
	require.NoError(t, os.Symlink(at("deep", "in"), at("folder")))
	require.NoError(t, os.Symlink(filepath.Join("..", "new"), at("deep", "in", "dangling")))
	require.NoError(t, os.Symlink("loop", at("loop")))

	require.NoError(t, WriteFile(at("link"), []byte("new")))
	require.Equal(t, "new", content(t, at("real")))
	require.NoError(t, WriteFile(at("folder", "dangling"), []byte("x")))
	require.Equal(t, "x", content(t, at("deep", "new")))
	for _, l := range []string{at("link"), at("deep", "in", "dangling")} {
		info, err := os.Lstat(l)
		require.NoError(t, err)
		require.NotZero(t, info.Mode()&os.ModeSymlink, "%s is still a link", l)
	}
	require.Error(t, WriteFile(at("loop"), nil))
	_, err := Check(at("link"), PNG, false, false)
	require.ErrorContains(t, err, "no PNG picture")
}

func TestCheck(t *testing.T) {
	dir := t.TempDir()
	at := func(parts ...string) string { return filepath.Join(append([]string{dir}, parts...)...) }
	for name, text := range map[string]string{"text": "notes", "empty": "", "png": "\x89PNG\r\n\x1a\nx", "svg": "<?xml?>\n<svg>",
		"sub": ` {"a": [{"attempt_1": [[0]]}]}`, "task": `{"train": []}`} {
		require.NoError(t, os.WriteFile(at(name), []byte(text), 0o644))
	}
	for _, c := range []struct {
		path        string
		kind        Kind
		force, make bool
		replaces    bool
		want        string
	}{
		{at("new"), PNG, false, false, false, ""},
		{at("empty"), PNG, false, false, false, ""},
		{at("png"), PNG, false, false, true, ""},
		{at("svg"), SVG, false, false, true, ""},
		{at("sub"), Submission, false, false, true, ""},
		{at("task"), Submission, false, false, false, "exists and is no submission"},
		{at("png"), SVG, false, false, false, "exists and is no SVG picture"},
		{at("text"), PNG, false, false, false, "--force"},
		{at("text"), PNG, true, false, true, ""},
		{dir, PNG, true, false, false, "is a folder"},
		{at("no", "way", "a"), PNG, false, false, false, "no such file"},
		{at("no", "way", "a"), PNG, false, true, false, ""},
		{at("text", "a"), PNG, false, false, false, "cannot be written"},
		{at("text", "b", "a"), PNG, false, true, false, "cannot be written"},
	} {
		replaces, err := Check(c.path, c.kind, c.force, c.make)
		require.Equal(t, c.replaces, replaces, c.path)
		if c.want == "" {
			require.NoError(t, err)
			continue
		}
		require.ErrorContains(t, err, c.want)
		var bad *Error
		require.ErrorAs(t, err, &bad)
	}
	require.Len(t, names(t, dir), 6, "looking leaves nothing")
}

func TestRead(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "a")
	require.NoError(t, os.WriteFile(path, []byte("12345"), 0o644))
	b, err := Read(path, 5)
	require.NoError(t, err)
	require.Equal(t, "12345", string(b))
	_, err = Read(path, 4)
	require.ErrorContains(t, err, "has 5 bytes, expected at most 4")
	_, err = Read(dir, 4)
	require.ErrorContains(t, err, "is a folder")
	_, err = Read(filepath.Join(dir, "none"), 4)
	require.ErrorContains(t, err, "cannot be read")
	require.NoError(t, os.Truncate(path, 20<<30)) // sparse
	_, err = Read(path, 64<<20)
	require.ErrorContains(t, err, "has 21474836480 bytes, expected at most 67108864 (64 MiB)")
}

func TestFolders(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, SyncDir(dir))
	free, err := Free(dir)
	require.NoError(t, err)
	require.NotZero(t, free)
	_, err = Free(filepath.Join(dir, "none"))
	require.Error(t, err)
}
