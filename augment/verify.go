package augment

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// Verify checks every file of a dataset folder against its manifest and lists
// what is wrong, one line each; none means the dataset is whole. progress, if
// given, is called with the bytes read so far and in total. The error is about
// the folder not being a dataset, or a cancelled context.
func Verify(ctx context.Context, dir string, progress func(done, total int64)) (problems []string, err error) {
	m, err := ReadManifest(dir)
	if err != nil {
		return nil, err
	}
	for _, name := range requiredFiles(m.Settings) {
		if _, ok := m.Files[name]; !ok {
			problems = append(problems, fmt.Sprintf("%s: not listed in %s", name, ManifestName))
		}
	}
	var done, total int64
	for _, f := range m.Files {
		n, _ := f.onDisk()
		total += n
	}
	for _, name := range sortedNames(m.Files) {
		if !filepath.IsLocal(filepath.FromSlash(name)) {
			return nil, inputErrorf("verify %s: the manifest lists %q, expected names inside the folder", dir, name)
		}
		path := filepath.Join(dir, filepath.FromSlash(name))
		wantSize, wantHash := m.Files[name].onDisk()
		info, err := os.Stat(path)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			problems = append(problems, name+": missing")
			continue
		case err != nil:
			problems = append(problems, name+": "+err.Error())
			continue
		case info.Size() != wantSize:
			problems = append(problems, fmt.Sprintf("%s: has %d bytes, expected %d", name, info.Size(), wantSize))
			continue
		}
		_, hash, err := hashFile(ctx, path, func(n int64) {
			if done += n; progress != nil {
				progress(done, total)
			}
		})
		switch {
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case err != nil:
			problems = append(problems, name+": "+err.Error())
		case hash != wantHash:
			problems = append(problems, fmt.Sprintf("%s: sha256 is %s, expected %s", name, hash, wantHash))
		}
	}
	extra, err := extraFiles(dir, m)
	if err != nil {
		return nil, err
	}
	for _, name := range extra {
		problems = append(problems, name+": not listed in "+ManifestName)
	}
	if h := datasetHash(m.Files); h != m.DatasetHash {
		problems = append(problems, fmt.Sprintf("%s: dataset_hash is %s, its files give %s", ManifestName, m.DatasetHash, h))
	}
	return problems, nil
}

// requiredFiles are the files of every dataset.
func requiredFiles(s Settings) []string {
	files := []string{"identifiers.json", TestPuzzlesName}
	suffix := ""
	if s.Compress == Zstd {
		suffix = zstdSuffix
	}
	for _, split := range []string{"train", "test"} {
		files = append(files, split+"/dataset.json")
		for _, a := range []string{"inputs", "labels", "puzzle_identifiers", "puzzle_indices", "group_indices"} {
			files = append(files, split+"/all__"+a+".npy"+suffix)
		}
	}
	return files
}
