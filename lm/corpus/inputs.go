package corpus

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"deeploop/internal/wording"
)

// kind is how documents are stored in a file.
type kind uint8

const (
	textFile    kind = iota // one document
	jsonLines               // a document per line
	parquetFile             // a document per row
)

// source is one file to read.
type source struct {
	path     string
	kind     kind
	compress string // "", ".gz" or ".zst"
	size     int64  // as stored
	input    int    // number of the input it belongs to
}

// kindOf tells kind and compression from a file's name; known is false for
// extensions that are not of text, which are text where a file is named.
func kindOf(name string) (k kind, compress string, known bool) {
	name = strings.ToLower(filepath.Base(name))
	for _, c := range []string{".gz", ".zst"} {
		if strings.HasSuffix(name, c) {
			name, compress = strings.TrimSuffix(name, c), c
			break
		}
	}
	switch filepath.Ext(name) {
	case ".jsonl", ".ndjson":
		return jsonLines, compress, true
	case ".parquet":
		return parquetFile, compress, true
	case ".txt", ".text", ".md":
		return textFile, compress, true
	}
	return textFile, compress, false
}

// listInputs finds the files of all inputs, in the order given, those of a
// folder sorted by path.
func listInputs(paths []string) (sources []source, inputs []Input, warnings []string, err error) {
	if len(paths) == 0 {
		return nil, nil, nil, inputErrorf("prepare: no input, expected files or folders (--input)")
	}
	for i, path := range paths {
		info, err := os.Stat(path)
		if err != nil {
			return nil, nil, nil, inputErrorf("read input: %w", err)
		}
		abs, err := filepath.Abs(path)
		if err != nil {
			return nil, nil, nil, inputErrorf("read input: %w", err)
		}
		in := Input{Name: filepath.Base(abs)}
		before := len(sources)
		switch {
		case info.IsDir():
			found, other, err := listFolder(path, i)
			if err != nil {
				return nil, nil, nil, err
			}
			if len(found) == 0 {
				return nil, nil, nil, inputErrorf("read input %s: no text in this folder, expected files named .txt, .text, .md, .jsonl, .ndjson or .parquet, plain, .gz or .zst", path)
			}
			if len(other) > 0 {
				warnings = append(warnings, "left out as not text by their names (name a file itself to read it): "+wording.List(other, 3))
			}
			sources = append(sources, found...)
		case !info.Mode().IsRegular():
			return nil, nil, nil, inputErrorf("read input %s: it is not a regular file (%v)", path, info.Mode().Type())
		default:
			k, compress, known := kindOf(path)
			if name := strings.TrimSuffix(strings.ToLower(path), compress); !known && strings.HasSuffix(name, ".json") {
				return nil, nil, nil, inputErrorf("read input %s: .json is not read; write one JSON object a line and name it .jsonl", path)
			}
			sources = append(sources, source{path: path, kind: k, compress: compress, size: info.Size(), input: i})
		}
		for _, s := range sources[before:] {
			in.Files++
			in.Bytes += s.size
		}
		inputs = append(inputs, in)
	}
	return sources, inputs, warnings, nil
}

// listFolder finds the text files below a folder; other lists the rest. Hidden
// ones do not count.
func listFolder(dir string, input int) (found []source, other []string, err error) {
	root := dir
	if real, err := filepath.EvalSymlinks(dir); err == nil {
		root = real // WalkDir does not follow a link
	}
	err = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if path != root && strings.HasPrefix(d.Name(), ".") {
			if d.IsDir() {
				return fs.SkipDir
			}
			return nil
		}
		if d.IsDir() {
			return nil
		}
		rel, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		info, err := os.Stat(path) // of what a link leads to
		if err != nil {
			return err
		}
		k, compress, known := kindOf(path)
		if !known || !info.Mode().IsRegular() {
			other = append(other, filepath.ToSlash(rel))
			return nil
		}
		found = append(found, source{path: filepath.Join(dir, rel), kind: k, compress: compress, size: info.Size(), input: input})
		return nil
	})
	if err != nil {
		return nil, nil, inputErrorf("read input: %w", err)
	}
	slices.SortFunc(found, func(a, b source) int { return strings.Compare(filepath.ToSlash(a.path), filepath.ToSlash(b.path)) })
	return found, other, nil
}
