//go:build unix

package files

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// A pipe gets the bytes and stays a pipe, also through a link.
func TestPipesAreWrittenThrough(t *testing.T) {
	dir := t.TempDir()
	pipe, link := filepath.Join(dir, "pipe"), filepath.Join(dir, "link")
	require.NoError(t, unix.Mkfifo(pipe, 0o600))
	require.NoError(t, os.Symlink("pipe", link))
	for _, path := range []string{pipe, link} {
		replaces, err := Check(path, PNG, false, false)
		require.NoError(t, err)
		require.False(t, replaces)
		read := make(chan string, 1)
		go func() {
			f, err := os.Open(pipe)
			if err != nil {
				read <- err.Error()
				return
			}
			b, _ := io.ReadAll(f)
			f.Close() // before the next writer, which would take this reader for its own
			read <- string(b)
		}()
		require.NoError(t, WriteFile(path, []byte("hello")))
		select {
		case got := <-read:
			require.Equal(t, "hello", got)
		case <-time.After(20 * time.Second):
			t.Fatal("nothing came through the pipe")
		}
		info, err := os.Lstat(pipe)
		require.NoError(t, err)
		require.NotZero(t, info.Mode()&os.ModeNamedPipe)
	}
	_, err := Read(pipe, 10)
	require.ErrorContains(t, err, "is not a regular file")
	require.Len(t, names(t, dir), 2)
}

// What names an open file, as /dev/stdout does, is written on, not replaced.
func TestOpenFilesAreWrittenOn(t *testing.T) {
	dir := t.TempDir()
	open, err := os.Create(filepath.Join(dir, "open"))
	require.NoError(t, err)
	defer open.Close()
	_, err = open.WriteString("before ")
	require.NoError(t, err)
	link := filepath.Join(dir, "link")
	require.NoError(t, os.Symlink(fmt.Sprintf("/proc/self/fd/%d", open.Fd()), link))
	if _, err := os.Stat(link); err != nil {
		t.Log("open files have no names here:", err)
		return
	}
	replaces, err := Check(link, PNG, false, false)
	require.NoError(t, err)
	require.False(t, replaces)
	require.NoError(t, WriteFile(link, []byte("after")))
	_, err = open.WriteString(" behind")
	require.NoError(t, err)
	require.Equal(t, "before after behind", content(t, open.Name()))
	require.Len(t, names(t, dir), 2)
}
