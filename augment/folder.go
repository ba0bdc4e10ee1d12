package augment

import (
	"io/fs"
	"path/filepath"

	"deeploop/internal/staging"
	"deeploop/internal/wording"
)

// checkTarget reports whether out may be written: it does not exist, is an
// empty folder, or, with force, is a dataset of ours and nothing else.
func checkTarget(out string, force bool) error {
	entries, err := staging.Occupied(out)
	if err != nil {
		return inputErrorf("write dataset: %w; choose another --out", err)
	}
	if len(entries) == 0 {
		return nil
	}
	m, err := ReadManifest(out)
	if err != nil {
		return inputErrorf("write dataset: folder %s exists and is not a dataset of build-data, so it is never overwritten; choose another --out", out)
	}
	if !force {
		return inputErrorf("write dataset: %s exists already (dataset %.12s, num-aug %d); use --force to replace it, or another --out",
			out, m.DatasetHash, m.Settings.NumAug)
	}
	extra, err := extraFiles(out, m)
	if err != nil {
		return err
	}
	if len(extra) > 0 {
		return inputErrorf("write dataset: %s also holds files that build-data did not write (%s), so it is not overwritten; move them or choose another --out",
			out, wording.List(extra, 3))
	}
	return nil
}

// extraFiles lists what is in a dataset folder besides its files.
func extraFiles(dir string, m *Manifest) ([]string, error) {
	var extra []string
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		name := filepath.ToSlash(rel)
		_, ours := m.Files[name]
		switch {
		case name == "." || name == ManifestName || ours:
		case d.IsDir() && (name == "train" || name == "test"):
		default:
			extra = append(extra, name)
			if d.IsDir() {
				return fs.SkipDir
			}
		}
		return nil
	})
	return extra, err
}
