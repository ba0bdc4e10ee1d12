package command

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"deeploop/internal/checkpoint"
	"deeploop/internal/cli"
	"deeploop/internal/train"
)

// Where the programs put what they make, below the working folder.
const (
	DataFolder = "data"
	RunsFolder = "runs"
)

// NewestFolder returns the folder below parent whose marker file was written
// last, of those that accept (nil: all of them); of equally old ones the last
// by name. It returns "" when there is none.
func NewestFolder(parent, marker string, accept func(dir string) bool) (string, error) {
	return newest(parent, []string{marker}, accept)
}

// newest is NewestFolder with several markers, of which a folder has one at
// least: the first that it has says how old it is.
func newest(parent string, markers []string, accept func(dir string) bool) (string, error) {
	entries, err := os.ReadDir(parent)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("look for the newest folder: %w", err)
	}
	type found struct {
		dir  string
		when time.Time
	}
	var all []found
	for _, e := range entries {
		dir := filepath.Join(parent, e.Name())
		for _, marker := range markers { // a folder without: not one of ours, or not finished
			if info, err := os.Stat(filepath.Join(dir, marker)); err == nil {
				all = append(all, found{dir, info.ModTime()})
				break
			}
		}
	}
	slices.SortFunc(all, func(a, b found) int { return cmp.Or(b.when.Compare(a.when), cmp.Compare(b.dir, a.dir)) })
	for _, f := range all {
		if accept == nil || accept(f.dir) {
			return f.dir, nil
		}
	}
	return "", nil
}

// NewestTraining returns the newest run in which a model of this kind was
// trained, "" when there is none. A run that has no readable checkpoint yet
// counts as one.
func NewestTraining(kind string) (string, error) {
	return newest(RunsFolder, []string{train.MetricsFile}, ofKind(kind))
}

// NewestRun is NewestTraining that also takes runs of imported models, which
// have checkpoints and no metrics.
func NewestRun(kind string) (string, error) {
	return newest(RunsFolder, []string{train.MetricsFile, checkpoint.Folder}, ofKind(kind))
}

// ofKind accepts runs of models of this kind.
func ofKind(kind string) func(dir string) bool {
	return func(dir string) bool {
		ck, err := checkpoint.OpenFound(dir, checkpoint.LastSaved)
		if err != nil {
			return true // whoever opens it says what is wrong
		}
		defer ck.Close()
		return ck.Meta().Kind == kind
	}
}

// RunOrNewest returns the only argument, or what newest (NewestRun,
// NewestTraining) finds of this kind. program trains such runs, for the message
// where there is none.
func RunOrNewest(program, kind string, args []string, newest func(kind string) (string, error)) (string, error) {
	if len(args) > 0 {
		return args[0], nil
	}
	dir, err := newest(kind)
	if err == nil && dir == "" {
		err = cli.Usagef("find a run: none below %s/; train one with %s train, or name a folder", RunsFolder, program)
	}
	return dir, err
}

// NewRunFolder returns the name of a folder under runs/ that does not exist:
// date, time and preset, with a number where that is taken.
func NewRunFolder(preset string, now time.Time) (string, error) {
	base := filepath.Join(RunsFolder, now.Format("20060102-150405")+"-"+preset)
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

// MissingFolders lists dir and the folders above it that do not exist, the
// innermost first.
func MissingFolders(dir string) []string {
	var missing []string
	for {
		if _, err := os.Lstat(dir); !errors.Is(err, fs.ErrNotExist) {
			return missing
		}
		missing = append(missing, dir)
		dir = filepath.Dir(dir)
	}
}

// RemoveEmpty removes those of the folders that are empty, in their order.
func RemoveEmpty(dirs []string) {
	for _, dir := range dirs {
		os.Remove(dir) // fails where something is in it
	}
}
