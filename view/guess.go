package view

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"deeploop/augment"
	"deeploop/internal/checkpoint"
	"deeploop/internal/predictions"
	"deeploop/internal/train"
)

// Kind is what an Item is.
type Kind string

// Kinds.
const (
	KindTasks   Kind = "tasks"   // a task file, a folder of them, Kaggle's files
	KindDataset Kind = "dataset" // a folder of build-data or of the reference builder
	KindAnswers Kind = "answers" // a predictions file
	KindRun     Kind = "run"     // the folder of a training
)

// Item is one thing to show.
type Item struct {
	Kind Kind
	Path string // "" of KindTasks: the sample tasks
	// Data is the dataset of a run or a predictions file where it is not the
	// one that it names.
	Data string
}

// Error is a path that cannot be shown.
type Error struct{ Path, Problem string }

func (e *Error) Error() string { return fmt.Sprintf("view %s: %s", e.Path, e.Problem) }

// BadInput tells the command line that the input is at fault.
func (e *Error) BadInput() bool { return true }

const expected = "expected a dataset, a run, a predictions file, tasks, or a folder of runs or datasets"

// Guess says what a path is. A folder that is nothing itself stands for the
// runs and datasets directly below it, or else for tasks.
func Guess(path string) ([]Item, error) {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, &Error{path, "does not exist, " + expected}
	case err != nil:
		return nil, &Error{path, err.Error()}
	case info.IsDir():
		return guessFolder(path)
	case !info.Mode().IsRegular():
		return nil, &Error{path, "is not a regular file, " + expected}
	}
	name := strings.ToLower(filepath.Base(path))
	switch {
	case name == train.MetricsFile || name == train.SessionsFile:
		return []Item{{Kind: KindRun, Path: filepath.Dir(path)}}, nil
	case strings.HasSuffix(name, ".safetensors") || strings.HasSuffix(name, ".zst"):
		return []Item{{Kind: KindAnswers, Path: path}}, nil
	case strings.HasSuffix(name, ".json"):
		return []Item{{Kind: KindTasks, Path: path}}, nil
	}
	return nil, &Error{path, "is of no known kind, " + expected}
}

func guessFolder(path string) ([]Item, error) {
	if kind, ok := folderKind(path); ok {
		return []Item{{Kind: kind, Path: path}}, nil
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		return nil, &Error{path, err.Error()}
	}
	var found []Item
	for _, e := range entries {
		below := filepath.Join(path, e.Name())
		if kind, ok := folderKind(below); ok {
			found = append(found, Item{Kind: kind, Path: below})
		}
	}
	if len(found) == 0 {
		found = []Item{{Kind: KindTasks, Path: path}}
	}
	return found, nil
}

// folderKind recognises runs and datasets by the files they must have.
func folderKind(dir string) (Kind, bool) {
	has := func(name string) bool {
		_, err := os.Stat(filepath.Join(dir, filepath.FromSlash(name)))
		return err == nil
	}
	switch {
	case has(train.MetricsFile), has(checkpoint.Folder + "/index.json"):
		return KindRun, true
	case has("train/dataset.json"):
		return KindDataset, true
	}
	return "", false
}

// openDataset opens a folder of build-data, or of the reference builder, which
// writes no manifest.
func openDataset(dir string) (*augment.Dataset, error) {
	if _, err := os.Stat(filepath.Join(dir, augment.ManifestName)); errors.Is(err, fs.ErrNotExist) {
		return augment.OpenArrays(dir)
	}
	return augment.OpenDataset(dir)
}

// evaluations lists the predictions files of a run, by name.
func evaluations(run string) []string {
	var found []string
	plain := strings.TrimSuffix(predictions.FileName, ".zst")
	for _, pattern := range []string{filepath.Join("*", predictions.FileName), filepath.Join("*", plain), predictions.FileName, plain} {
		names, err := filepath.Glob(filepath.Join(globEscape(run), "eval", pattern))
		if err == nil {
			found = append(found, names...)
		}
	}
	return found
}

// globEscape makes a path a pattern that matches it alone.
func globEscape(path string) string {
	if os.PathSeparator == '\\' { // where patterns know no escape
		return path
	}
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(path)
}
