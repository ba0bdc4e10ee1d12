package arc

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"deeploop/internal/files"
)

// Load reads tasks from files and folders, each recognised by what it holds:
//
//   - a folder with task folders, such as training/ and evaluation/ of ARC-AGI
//     or the concepts of ConceptARC, also below data/, corpus/ or the like;
//   - a flat folder of task files;
//   - combined files of Kaggle, *_challenges.json with the optional
//     *_solutions.json beside it (also spelt with hyphens), one or a folder;
//   - a single task file.
//
// Task.HoldOut says what is kept out of training. Bad input gives an *Error;
// what is odd but legal ends up in Corpus.Warnings.
func Load(paths ...string) (*Corpus, error) { return (&loader{}).load(paths) }

// LoadSome is Load that reads every task below a folder, also tasks beside
// folders of tasks and folders beside data/ or corpus/, and leaves files out,
// with a warning, where they are not what it expects. One task at least must
// remain. Tasks of one name are the caller's to tell apart (Corpus.Clashes).
func LoadSome(paths ...string) (*Corpus, error) {
	l := &loader{lenient: true}
	c, err := l.load(paths)
	if err == nil && len(c.Tasks) == 0 {
		return nil, l.first
	}
	return c, err
}

func (l *loader) load(paths []string) (*Corpus, error) {
	if len(paths) == 0 {
		return nil, fileErrorf("", "no input given, expected a task file or a folder of tasks")
	}
	l.corpus, l.seen = &Corpus{}, make(map[string]bool)
	for _, path := range paths {
		if err := l.path(path); err != nil {
			return nil, err
		}
	}
	c := l.corpus
	c.noteOverlaps(&l.notes)
	if !l.lenient {
		c.noteClashes(&l.notes)
	}
	c.Warnings = l.notes.warnings()
	return c, nil
}

// loader gathers a corpus.
type loader struct {
	corpus *Corpus
	notes  notes
	seen   map[string]bool // files read, as absolute paths without links
	inside []string        // folders being read, from the outermost, likewise

	lenient bool  // everything below a folder is read, and what is no task left out
	first   error // about the first of them
}

// path reads one input.
func (l *loader) path(path string) error {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fileErrorf(path, "does not exist, expected a task file or a folder of tasks")
	case err != nil:
		return unreadable(path, err)
	case !info.IsDir():
		return l.file(path)
	}
	before := len(l.corpus.Sources)
	if err := l.folder(filepath.Clean(path), true, 0); err != nil {
		return err
	}
	if len(l.corpus.Sources) == before && !l.holdsJSON(path, 0) {
		entries, err := os.ReadDir(path)
		if err == nil && len(entries) == 0 {
			return fileErrorf(path, "is an empty folder, expected task files (*.json) or folders of them")
		}
		return fileErrorf(path, "has no task files (*.json), expected some in it or in folders such as training/ and evaluation/")
	}
	return nil
}

// unreadable reports a file system error as bad input.
func unreadable(path string, err error) error {
	var pathErr *fs.PathError
	if errors.As(err, &pathErr) {
		err = pathErr.Err
	}
	return fileErrorf(path, "cannot be read: %v", err)
}

// file reads one file named by the caller: a task or a combined file.
func (l *loader) file(path string) error {
	return l.group(path, []string{path}, true)
}

// group reads files as one group, or as one each if they are combined files.
// flat says that the caller named the folder or file itself, so that test
// pairs are held out unless the folder is called "training".
func (l *loader) group(path string, files []string, flat bool) error {
	name := ""
	if path != files[0] {
		name = folderName(path)
	}
	hold := name == "evaluation" || flat && name != "training"
	kaggle := slices.ContainsFunc(files, isChallenges)
	start := len(l.corpus.Tasks)
	for _, f := range files {
		if kaggle && !isChallenges(f) {
			if !isSolutions(f) {
				l.notes.add("other", "not read, lies beside *_challenges.json", f)
			}
			continue
		}
		content, err := l.read(f)
		if err != nil && l.lenient && f != path {
			l.first = cmp.Or(l.first, err)
			l.notes.add("left out", "not read, no task", err.Error())
			continue
		}
		if err != nil {
			return err
		}
		if content.combined {
			l.endGroup(name, path, start)
			start = len(l.corpus.Tasks)
			if err := l.solutions(f, content.tasks); err != nil {
				return err
			}
			set := challengeSet(f)
			l.add(content.tasks, set, true)
			l.endGroup(set, f, start)
			start = len(l.corpus.Tasks)
			continue
		}
		l.add(content.tasks, name, hold)
	}
	l.endGroup(name, path, start)
	for _, f := range files {
		if kaggle && isSolutions(f) && !l.again(f) {
			l.notes.add("orphan", "not read, has no *_challenges.json beside it", f)
		}
	}
	return nil
}

// folderName is the name of a folder, also of "." and "..".
func folderName(dir string) string {
	if abs, err := filepath.Abs(dir); err == nil {
		dir = abs
	}
	return filepath.Base(dir)
}

func (l *loader) add(tasks []Task, split string, hold bool) {
	for _, t := range tasks {
		t.Split, t.HoldOut = split, hold
		l.corpus.Tasks = append(l.corpus.Tasks, t)
	}
}

func (l *loader) endGroup(name, path string, start int) {
	if end := len(l.corpus.Tasks); end > start {
		l.corpus.Groups = append(l.corpus.Groups, Group{Name: name, Path: path, Start: start, End: end})
	}
}

// read parses one file. A file that was read before gives nothing but a note.
func (l *loader) read(path string) (fileContent, error) {
	if l.again(path) {
		l.notes.add("again", "named more than once, read once", path)
		return fileContent{}, nil
	}
	if err := CheckID(stemOf(path)); err != nil {
		return fileContent{}, fileErrorf(path, "%v", err)
	}
	data, err := l.bytes(path)
	if err != nil {
		return fileContent{}, err
	}
	return parseFile(path, stemOf(path), data, &l.notes)
}

// again reports whether the same file was read before.
func (l *loader) again(path string) bool {
	real := realPath(path)
	if real == "" {
		return false // reading it will report why
	}
	if l.seen[real] {
		return true
	}
	l.seen[real] = true
	return false
}

// Largest files that are read, in bytes.
const (
	MaxTaskFile     = 64 << 20
	MaxCombinedFile = 1 << 30 // *_challenges.json and *_solutions.json
)

// realPath is an absolute path without links, "" where there is none.
func realPath(path string) string {
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return ""
	}
	if abs, err := filepath.Abs(real); err == nil {
		real = abs
	}
	return real
}

// bytes reads a file and records it as a source.
func (l *loader) bytes(path string) ([]byte, error) {
	limit := int64(MaxTaskFile)
	if isChallenges(path) || isSolutions(path) {
		limit = MaxCombinedFile
	}
	data, err := files.Read(path, limit)
	var bad *files.Error
	if errors.As(err, &bad) {
		return nil, fileErrorf(path, "%s", bad.Problem)
	}
	if err != nil {
		return nil, unreadable(path, err)
	}
	sum := sha256.Sum256(data)
	l.corpus.Sources = append(l.corpus.Sources, Source{File: path, SHA256: hex.EncodeToString(sum[:])})
	return data, nil
}
