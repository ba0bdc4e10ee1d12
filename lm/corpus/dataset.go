package corpus

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"deeploop/lm/tokens"
)

// Dataset is an open dataset. Its splits may be read from several goroutines.
type Dataset struct {
	Path string
	// Format says in words what was found.
	Format string
	// Manifest of a folder that Prepare wrote. Of foreign data it has only the
	// tokenizer, the counts of tokens and the files' names and sizes.
	Manifest  Manifest
	Tokenizer tokens.Tokenizer
	Train     *Split
	Val       *Split
	// Hash identifies the data: the manifest's dataset hash. Of foreign data it
	// is over names, sizes and the first and last 64 KiB of each file.
	Hash string
	// Warnings for a person, one line each.
	Warnings []string
}

// What Format says.
const (
	FormatDataset = "dataset of lm prepare"
	FormatLLMC16  = "llm.c tokens, uint16"
	FormatLLMC32  = "llm.c tokens, uint32"
	FormatNanoGPT = "nanoGPT tokens, uint16 without a header"
	FormatSample  = "embedded sample"
)

// Open opens a folder that Prepare wrote, or foreign tokens: a folder of .bin
// files with train or val in their names, or one such file, of llm.c (with a
// header) or nanoGPT (without). Foreign tokens are taken for GPT-2's unless a
// tokenizer.json of package tokens is beside them. Sizes are always checked,
// contents by Verify.
func Open(path string) (*Dataset, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, inputErrorf("open dataset: %w", err)
	}
	if !info.IsDir() {
		return openForeign(path, []string{path})
	}
	m, err := ReadManifest(path)
	if err == nil {
		return openOwn(path, m)
	}
	if _, e := os.Stat(filepath.Join(path, ManifestName)); !errors.Is(e, fs.ErrNotExist) {
		return nil, err
	}
	names, globErr := filepath.Glob(filepath.Join(escapeGlob(path), "*.bin"))
	if globErr != nil || len(names) == 0 {
		return nil, err
	}
	return openForeign(path, names)
}

// escapeGlob makes a path match itself only.
func escapeGlob(path string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(path)
}

// Close closes the files.
func (d *Dataset) Close() error { return errors.Join(d.Train.close(), d.Val.close()) }

// openOwn opens what Prepare wrote.
func openOwn(dir string, m *Manifest) (_ *Dataset, err error) {
	d := &Dataset{Path: dir, Format: FormatDataset, Manifest: *m, Hash: m.DatasetHash, Train: &Split{Name: "train"}, Val: &Split{Name: "val"}}
	defer func() {
		if err != nil {
			d.Close()
		}
	}()
	if d.Tokenizer, err = readTokenizer(dir); err != nil {
		return nil, inputErrorf("open dataset %s: %w", dir, err)
	}
	if d.Tokenizer.Name() != m.Tokenizer || d.Tokenizer.VocabSize() != m.VocabSize {
		return nil, inputErrorf("open dataset %s: %s is of a %s tokenizer with %d ids, %s says %s with %d; prepare it again", dir, TokenizerName,
			d.Tokenizer.Name(), d.Tokenizer.VocabSize(), ManifestName, m.Tokenizer, m.VocabSize)
	}
	for _, f := range m.Files {
		split := d.splitOf(f.Name)
		if split == nil {
			continue
		}
		s, err := openShard(filepath.Join(dir, f.Name))
		if err != nil {
			return nil, err
		}
		split.add(s, m.VocabSize)
		if s.format == FormatNanoGPT || s.count != f.Tokens || s.size != f.Bytes {
			return nil, inputErrorf("open dataset %s: it has %d tokens in %d bytes, %s says %d in %d; prepare it again",
				s.path, s.count, s.size, ManifestName, f.Tokens, f.Bytes)
		}
	}
	for _, c := range []struct {
		split  *Split
		counts Counts
	}{{d.Train, m.Train}, {d.Val, m.Val}} {
		if c.split.Len() != c.counts.Tokens {
			return nil, inputErrorf("open dataset %s: the %s shards have %d tokens, %s says %d; prepare it again", dir, c.split.Name, c.split.Len(), ManifestName, c.counts.Tokens)
		}
	}
	return d, nil
}

// splitOf returns the split that a file belongs to by the words of its name,
// or nil.
func (d *Dataset) splitOf(name string) *Split {
	words := strings.FieldsFunc(strings.ToLower(filepath.Base(name)), func(r rune) bool { return r == '_' || r == '-' || r == '.' })
	if len(words) < 2 || words[len(words)-1] != "bin" {
		return nil
	}
	for _, w := range words {
		switch w {
		case "train", "training":
			return d.Train
		case "val", "valid", "validation":
			return d.Val
		}
	}
	return nil
}
