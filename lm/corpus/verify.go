package corpus

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
)

// Verify reads all of a dataset and lists what is wrong, one line each; none
// means it is whole: every token is in the vocabulary, and the files of a folder
// that Prepare wrote have the SHA-256 that its manifest says. progress, if
// given, is called with the bytes read so far and in total. The error is about
// reading, or a cancelled context.
func (d *Dataset) Verify(ctx context.Context, progress func(done, total int64)) (problems []string, err error) {
	var done int64
	total := d.Bytes()
	step := func(n int64) {
		done += n
		if progress != nil {
			progress(done, total)
		}
	}
	own := d.Format == FormatDataset
	for _, split := range []*Split{d.Train, d.Val} {
		buf := make([]int32, 1<<18)
		for i, sh := range split.shards {
			for at := split.starts[i]; at < split.starts[i+1]; {
				if err := ctx.Err(); err != nil {
					return problems, err
				}
				part := buf[:min(int64(len(buf)), split.starts[i+1]-at)]
				if err := split.Read(part, at); err != nil {
					var bad *InputError
					if !errors.As(err, &bad) {
						return problems, err
					}
					problems = append(problems, err.Error())
					break
				}
				at += int64(len(part))
				if !own {
					step(int64(len(part)) * sh.width)
				}
			}
		}
	}
	if !own {
		return problems, nil
	}
	changed, err := d.changed(ctx, step)
	problems = append(problems, changed...)
	if err != nil {
		return problems, err
	}
	if h := datasetHash(d.Manifest.Files); h != d.Manifest.DatasetHash {
		problems = append(problems, fmt.Sprintf("%s: dataset hash is %.12s, its files give %.12s", ManifestName, d.Manifest.DatasetHash, h))
	}
	return problems, nil
}

// changed lists the files of a folder that Prepare wrote whose SHA-256 is not
// the manifest's.
func (d *Dataset) changed(ctx context.Context, step func(bytes int64)) (problems []string, err error) {
	for _, f := range d.Manifest.Files {
		sum, err := hashFile(ctx, filepath.Join(d.Path, f.Name), step)
		if err != nil {
			return problems, err
		}
		if sum != f.SHA256 {
			problems = append(problems, fmt.Sprintf("%s: SHA-256 is %.12s, %s says %.12s", f.Name, sum, ManifestName, f.SHA256))
		}
	}
	return problems, nil
}

// CheckFiles is the part of Verify that takes a second or so, for datasets of
// at most so many bytes: it returns an *InputError when a file of a folder that
// Prepare wrote has changed since, a flipped token for instance. checked is
// false where the dataset is larger, or foreign.
func (d *Dataset) CheckFiles(ctx context.Context, most int64) (checked bool, err error) {
	if d.Format != FormatDataset || d.Bytes() > most {
		return false, nil
	}
	problems, err := d.changed(ctx, func(int64) {})
	if err == nil && len(problems) > 0 {
		err = inputErrorf("open dataset %s: it has changed since it was prepared: %s; prepare it again", d.Path, strings.Join(problems, "; "))
	}
	return err == nil, err
}

// Bytes is the size of all files.
func (d *Dataset) Bytes() (total int64) {
	for _, f := range d.Manifest.Files {
		total += f.Bytes
	}
	return total
}

func hashFile(ctx context.Context, path string, step func(int64)) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", inputErrorf("verify dataset: %w", err)
	}
	defer f.Close()
	h := sha256.New()
	for {
		if err := ctx.Err(); err != nil {
			return "", err
		}
		n, err := io.CopyN(h, f, 1<<20)
		step(n)
		if err == io.EOF {
			return hex.EncodeToString(h.Sum(nil)), nil
		}
		if err != nil {
			return "", inputErrorf("verify dataset: %w", err)
		}
	}
}
