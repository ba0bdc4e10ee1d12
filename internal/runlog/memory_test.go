package runlog

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// Free is what the system calls available, or what the control group leaves.
func TestFreeBytes(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644))
	}
	info := filepath.Join(dir, "meminfo")
	require.Zero(t, freeBytes(info, dir), "nobody tells")
	write("meminfo", "MemTotal:       24000000 kB\nMemFree:         1000 kB\nMemAvailable:    8000 kB\n")
	require.Equal(t, uint64(8000*1024), freeBytes(info, dir))
	write("memory.max", "max\n")
	write("memory.current", "5000\n")
	require.Equal(t, uint64(8000*1024), freeBytes(info, dir))
	write("memory.max", "90000\n")
	require.Equal(t, uint64(85000), freeBytes(info, dir))
	write("memory.stat", "anon 4000\ninactive_file 600\n")
	require.Equal(t, uint64(85600), freeBytes(info, dir))
	write("memory.current", "95000\n") // a limit that was lowered
	require.Equal(t, uint64(600), freeBytes(info, dir))
}
