package main

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// touch makes a file with its folders, changed at minute min.
func touch(t *testing.T, min int, parts ...string) {
	t.Helper()
	path := filepath.Join(parts...)
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
	require.NoError(t, os.WriteFile(path, nil, 0o644))
	when := time.Date(2026, 1, 2, 3, min, 0, 0, time.UTC)
	require.NoError(t, os.Chtimes(path, when, when))
}

func TestNewestFolderIsTheLastFinishedOne(t *testing.T) {
	t.Chdir(t.TempDir())
	got, err := newestFolder("data", "manifest.json")
	require.NoError(t, err)
	require.Empty(t, got, "no data folder at all")

	touch(t, 5, "data", "a", "manifest.json")
	touch(t, 7, "data", "b", "manifest.json")
	touch(t, 6, "data", "c", "manifest.json")
	touch(t, 9, "data", "unfinished", "train", "all__inputs.npy")
	touch(t, 9, "data", "manifest.json")
	got, err = newestFolder("data", "manifest.json")
	require.NoError(t, err)
	require.Equal(t, filepath.Join("data", "b"), got)

	touch(t, 7, "data", "bb", "manifest.json")
	got, err = newestFolder("data", "manifest.json")
	require.NoError(t, err)
	require.Equal(t, filepath.Join("data", "bb"), got, "equally old: last by name")
}

func TestNewRunFolderIsNeverAnOldOne(t *testing.T) {
	t.Chdir(t.TempDir())
	now := time.Date(2026, 11, 30, 5, 4, 3, 0, time.UTC)
	first, err := newRunFolder("laptop", now)
	require.NoError(t, err)
	require.Equal(t, filepath.Join("runs", "20261130-050403-laptop"), first)
	require.NoError(t, os.MkdirAll(first, 0o755))
	second, err := newRunFolder("laptop", now)
	require.NoError(t, err)
	require.Equal(t, first+"-2", second)
}
