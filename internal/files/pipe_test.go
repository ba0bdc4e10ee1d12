//go:build unix

package files

import (
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
			defer f.Close()
			b, _ := io.ReadAll(f)
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
