package corpus

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"deeploop/lm/tokens"
)

// openForeign opens token files of other programs. A single file of neither
// word in its name is train.
func openForeign(path string, names []string) (_ *Dataset, err error) {
	d := &Dataset{Path: path, Train: &Split{Name: "train"}, Val: &Split{Name: "val"}}
	defer func() {
		if err != nil {
			d.Close()
		}
	}()
	dir := filepath.Dir(names[0])
	d.Tokenizer, err = readTokenizer(dir)
	if errors.Is(err, fs.ErrNotExist) {
		d.Tokenizer, err = tokens.GPT2(), nil
		if _, e := os.Stat(filepath.Join(dir, "meta.pkl")); e == nil {
			d.Warnings = append(d.Warnings, fmt.Sprintf("%s is not read, so the ids are taken for GPT-2's; for other ids put a %s of lm prepare beside them",
				filepath.Join(dir, "meta.pkl"), TokenizerName))
		}
	}
	if err != nil {
		return nil, inputErrorf("open dataset %s: %w", path, err)
	}
	vocab := d.Tokenizer.VocabSize()
	d.Manifest = Manifest{Tokenizer: d.Tokenizer.Name(), VocabSize: vocab, Separator: d.Tokenizer.Separator()}
	h := sha256.New()
	var left []string
	for _, name := range names {
		split := d.splitOf(name)
		if split == nil && name == path {
			split = d.Train
		}
		if split == nil {
			left = append(left, filepath.Base(name))
			continue
		}
		s, err := openShard(name)
		if err != nil {
			return nil, err
		}
		if d.Format == "" {
			d.Format = s.format
		}
		split.add(s, vocab)
		if s.format != d.Format {
			return nil, inputErrorf("open dataset %s: %s holds %s and others %s, expected one format", path, s.path, s.format, d.Format)
		}
		d.Manifest.Files = append(d.Manifest.Files, FileInfo{Name: filepath.Base(name), Bytes: s.size, Tokens: s.count})
		if err := s.sample(h); err != nil {
			return nil, err
		}
		head := make([]int32, min(s.count, 1<<16))
		if err := split.Read(head, split.Len()-s.count); err != nil {
			return nil, err
		}
	}
	if len(d.Manifest.Files) == 0 {
		return nil, inputErrorf("open dataset %s: none of its .bin files (%s) has train or val in its name, so none is read", path, strings.Join(left, ", "))
	}
	if len(left) > 0 {
		d.Warnings = append(d.Warnings, fmt.Sprintf("not read, with neither train nor val in their names: %s", strings.Join(left, ", ")))
	}
	d.Manifest.Train.Tokens, d.Manifest.Val.Tokens = d.Train.Len(), d.Val.Len()
	d.Hash = hex.EncodeToString(h.Sum(nil))
	return d, nil
}

// hashedBytes of each end of a foreign file stand for its content.
const hashedBytes = 64 << 10

// sample hashes what tells a foreign file from others without reading it all.
func (s *shard) sample(h io.Writer) error {
	fmt.Fprintf(h, "%s %d\n", filepath.Base(s.path), s.size)
	for _, at := range []int64{0, max(0, s.size-hashedBytes)} {
		if _, err := io.Copy(h, io.NewSectionReader(s.data, at, hashedBytes)); err != nil {
			return inputErrorf("open dataset %s: %w", s.path, err)
		}
	}
	return nil
}
