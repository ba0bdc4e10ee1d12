package cli

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"deeploop/internal/wording"
)

// missing says of an error about a file that does not exist where it was looked
// for, and which name there is near; "" for other errors.
func missing(err error) string {
	var about *fs.PathError
	if !errors.As(err, &about) || !errors.Is(err, fs.ErrNotExist) || about.Path == "" {
		return ""
	}
	absolute, err := filepath.Abs(about.Path)
	if err != nil {
		return ""
	}
	folder, name := filepath.Dir(absolute), filepath.Base(absolute)
	entries, err := os.ReadDir(folder)
	for err != nil && folder != filepath.Dir(folder) { // the innermost folder that is there
		folder, name = filepath.Dir(folder), filepath.Base(folder)
		entries, err = os.ReadDir(folder)
	}
	var names []string
	for _, e := range entries {
		if e.Name() != name { // else something below it is missing
			names = append(names, e.Name())
		}
	}
	text := ""
	if !filepath.IsAbs(about.Path) {
		text = "; looked in " + folder
	}
	if near := wording.Nearest(name, names); near != "" {
		if filepath.IsAbs(about.Path) {
			near = filepath.Join(folder, near)
		}
		text += "; did you mean " + near + "?"
	}
	return text
}
