package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"deeploop/internal/cli"
)

// Where programs put what they make, below the working folder.
const (
	dataFolder = "data"
	runsFolder = "runs"
)

// newestFolder returns the folder below parent whose marker file was written
// last; of equally old ones the last by name. It returns "" when there is
// none.
func newestFolder(parent, marker string) (string, error) {
	entries, err := os.ReadDir(parent)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("look for the newest folder: %w", err)
	}
	newest, when := "", time.Time{}
	for _, e := range entries {
		dir := filepath.Join(parent, e.Name())
		info, err := os.Stat(filepath.Join(dir, marker))
		if err != nil {
			continue // not one of ours, or not finished
		}
		if newest == "" || !info.ModTime().Before(when) {
			newest, when = dir, info.ModTime()
		}
	}
	return newest, nil
}

// newRunFolder returns the name of a folder under runs/ that does not exist:
// date, time and preset, with a number where that is taken.
func newRunFolder(preset string, now time.Time) (string, error) {
	base := filepath.Join(runsFolder, now.Format("20060102-150405")+"-"+preset)
	dir := base
	for i := 2; i < 1000; i++ {
		_, err := os.Lstat(dir)
		if errors.Is(err, fs.ErrNotExist) {
			return dir, nil
		}
		if err != nil {
			return "", fmt.Errorf("choose a run folder: %w", err)
		}
		dir = fmt.Sprintf("%s-%d", base, i)
	}
	return "", cli.Usagef("choose a run folder: %s and its numbered followers exist; name one with --run", base)
}

// missingFolders lists dir and the folders above it that do not exist, the
// innermost first.
func missingFolders(dir string) []string {
	var missing []string
	for {
		if _, err := os.Lstat(dir); !errors.Is(err, fs.ErrNotExist) {
			return missing
		}
		missing = append(missing, dir)
		dir = filepath.Dir(dir)
	}
}

// removeEmpty removes those of the folders that are empty, in their order.
func removeEmpty(dirs []string) {
	for _, dir := range dirs {
		os.Remove(dir) // fails where something is in it
	}
}
