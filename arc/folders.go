package arc

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"strings"

	"deeploop/internal/files"
)

// maxFolders bounds how deep task folders may lie under a given folder; a
// checkout of ARC-AGI needs 2 (data/training), of ConceptARC 2 (corpus/Copy).
const maxFolders = 4

// folder reads the JSON files of dir as one group, then its folders by name.
// top says that dir was named by the caller.
func (l *loader) folder(dir string, top bool, depth int) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return unreadable(dir, err)
	}
	defer l.enter(dir)()
	var files, folders []string
	for _, e := range entries { // by name
		path := filepath.Join(dir, e.Name())
		switch {
		case strings.HasPrefix(e.Name(), "."):
		case isDir(e, path) && l.loops(e, path):
			l.notes.add("loop", "not read, links to a folder that it lies in", path)
		case isDir(e, path) && made(path):
		case isDir(e, path):
			folders = append(folders, path)
		case strings.EqualFold(filepath.Ext(path), ".json"):
			files = append(files, path)
		}
	}
	sort.Strings(files)
	sort.Strings(folders)
	var inner []string
	for _, f := range folders {
		if depth < maxFolders && l.holdsJSON(f, depth+1) {
			inner = append(inner, f)
		} else if depth == maxFolders && l.holdsJSON(f, maxFolders) {
			l.notes.add("deep", fmt.Sprintf("not read, lies more than %d folders deep", maxFolders), f)
		} else if name := filepath.Base(f); name == "training" || name == "evaluation" {
			l.notes.add("empty", "has no task files", f)
		}
	}
	if !l.lenient {
		inner = l.corpusFolders(inner)
	}
	if len(files) > 0 && len(inner) > 0 && top && !l.lenient {
		// As in the reference, files beside task folders are no tasks.
		for _, f := range files {
			l.notes.add("beside", "not read, lies beside folders of tasks", f)
		}
		files = nil
	}
	if len(files) > 0 {
		if err := l.group(dir, files, top && len(inner) == 0); err != nil {
			return err
		}
	}
	for _, f := range inner {
		if err := l.folder(f, false, depth+1); err != nil {
			return err
		}
	}
	return nil
}

// made reports whether a folder below the one that the caller named is a
// dataset, a run or the work of hrm solve: somebody who works where the tasks
// are has those beside them, and no task is in them.
func made(dir string) bool {
	for _, mark := range []string{"train/dataset.json", "metrics.jsonl", "checkpoints/index.json"} {
		if _, err := os.Stat(filepath.Join(dir, filepath.FromSlash(mark))); err == nil {
			return true
		}
	}
	raw, err := files.Read(filepath.Join(dir, "settings.json"), 1<<20)
	var work struct{ Version, Settings json.RawMessage }
	return err == nil && json.Unmarshal(raw, &work) == nil && work.Version != nil && work.Settings != nil
}

// isDir follows links.
func isDir(e fs.DirEntry, path string) bool {
	if e.Type()&fs.ModeSymlink == 0 {
		return e.IsDir()
	}
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// enter notes that dir is being read until the returned function is called.
func (l *loader) enter(dir string) func() {
	l.inside = append(l.inside, realPath(dir))
	return func() { l.inside = l.inside[:len(l.inside)-1] }
}

// loops reports whether a link leads to a folder being read or to one above
// it, so that reading it would read the same again.
func (l *loader) loops(e fs.DirEntry, path string) bool {
	if e.Type()&fs.ModeSymlink == 0 {
		return false
	}
	real := realPath(path)
	return slices.ContainsFunc(l.inside, func(dir string) bool {
		rel, err := filepath.Rel(real, dir)
		return err == nil && rel != ".." && !strings.HasPrefix(rel, ".."+string(filepath.Separator))
	})
}

// holdsJSON reports whether a folder has JSON files, itself or below.
func (l *loader) holdsJSON(dir string, depth int) bool {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return true // reading it will report why
	}
	defer l.enter(dir)()
	for _, e := range entries {
		path := filepath.Join(dir, e.Name())
		switch {
		case strings.HasPrefix(e.Name(), "."):
		case isDir(e, path):
			if depth < maxFolders && !made(path) && !l.loops(e, path) && l.holdsJSON(path, depth+1) {
				return true
			}
		case strings.EqualFold(filepath.Ext(path), ".json"):
			return true
		}
	}
	return false
}

// corpusFolders picks the task folders of a checkout, which has other things
// beside them: data/ of ARC-AGI, corpus/ and MinimalTasks/ of ConceptARC.
func (l *loader) corpusFolders(folders []string) []string {
	var picked, others []string
	for _, f := range folders {
		switch filepath.Base(f) {
		case "training", "evaluation":
			return folders
		case "data", "corpus", "MinimalTasks":
			picked = append(picked, f)
		default:
			others = append(others, f)
		}
	}
	if len(picked) == 0 {
		return folders
	}
	for _, f := range others {
		l.notes.add("other folder", "not read, lies beside data/, corpus/ or MinimalTasks/", f)
	}
	return picked
}
