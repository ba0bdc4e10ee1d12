package corpus

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"

	"deeploop/internal/files"
	"deeploop/internal/staging"
	"deeploop/lm/tokens"
)

// Options are what Prepare needs besides its settings.
type Options struct {
	Settings Settings
	// Force replaces an existing dataset, once the new one is complete.
	Force bool
	// Threads tokenize at the same time; 0: one per processor. They do not
	// change the result.
	Threads int
	// Program is the version that the manifest names.
	Program string
	// Progress, if given, is called now and then with what is being done and
	// the bytes of input read so far and in total. Calls do not overlap.
	Progress func(phase string, done, total int64)
}

// Prepare reads documents from files and folders, tokenizes them and writes a
// dataset to the folder out. Memory does not grow with the input. The folder
// appears when it is complete; an error or a cancelled context leaves nothing
// behind and an existing dataset as it was. The same inputs (by their content,
// last names and order), settings and program give the same bytes.
func Prepare(ctx context.Context, inputs []string, out string, opt Options) (*Manifest, error) {
	if err := opt.Settings.Check(); err != nil {
		return nil, err
	}
	if out == "" {
		return nil, inputErrorf("write dataset: the folder to write (--out) is missing")
	}
	out = filepath.Clean(out)
	if real, err := filepath.EvalSymlinks(out); err == nil {
		out = real
	}
	staging.RemoveStale(out)
	if err := checkTarget(out, opt.Force); err != nil {
		return nil, err
	}
	sources, described, warnings, err := listInputs(inputs)
	if err != nil {
		return nil, err
	}
	m := &Manifest{Format: manifestFormat, Version: manifestVersion, Program: opt.Program, Settings: opt.Settings, Inputs: described, Warnings: warnings}
	p, err := plan(ctx, sources, opt, m)
	if err != nil {
		return nil, err
	}
	if err := p.write(ctx, out, m); err != nil {
		return nil, err
	}
	return m, nil
}

// planned is a dataset about to be written.
type planned struct {
	pipeline
	options Options
	sources []source
}

// phase returns a function for a walker's progress.
func (o Options) phase(name string) func(done, total int64) {
	if o.Progress == nil {
		return nil
	}
	return func(done, total int64) { o.Progress(name, done, total) }
}

// plan looks through the input and chooses tokenizer and split.
func plan(ctx context.Context, sources []source, opt Options, m *Manifest) (*planned, error) {
	set := opt.Settings
	fraction := set.ValFraction
	if fraction < 0 {
		fraction = DefaultValFraction
	}
	var chars *tokens.CharSet
	var add func([]byte)
	if set.Tokenizer == tokens.CharName {
		chars = new(tokens.CharSet)
		add = chars.Add
	}
	var v survey
	if err := v.look(ctx, newWalker(sources, set.TextKey, opt.phase("looking through")), set, fraction, add); err != nil {
		return nil, err
	}
	if v.documents == 1 && set.ValFraction < 0 {
		fraction = SingleValFraction
	}
	m.Settings.ValFraction = fraction
	r, warning := v.decide(fraction)
	if warning != "" {
		m.Warnings = append(m.Warnings, warning)
	}
	p := &planned{options: opt, sources: sources}
	p.rule, p.seed, p.threads, p.separator = r, set.Seed, opt.Threads, -1
	if p.threads < 1 {
		p.threads = runtime.GOMAXPROCS(0)
	}
	switch set.Tokenizer {
	case tokens.ByteName:
		p.tokenizer = tokens.Byte()
	case tokens.GPT2Name:
		p.tokenizer = tokens.GPT2()
	case tokens.CharName:
		var err error
		if p.tokenizer, err = chars.Tokenizer(v.documents > 1); err != nil {
			return nil, err
		}
	}
	if v.documents > 1 {
		p.separator = p.tokenizer.Separator()
	}
	m.Tokenizer, m.VocabSize, m.Separator = set.Tokenizer, p.tokenizer.VocabSize(), p.tokenizer.Separator()
	return p, nil
}

// write fills a hidden folder and moves it to out.
func (p *planned) write(ctx context.Context, out string, m *Manifest) (err error) {
	stage, err := staging.New(out)
	if err != nil {
		return inputErrorf("write dataset: %w", err)
	}
	defer func() { err = cmp.Or(err, stage.Remove()) }()
	width := int64(2)
	if m.VocabSize > 1<<16 {
		width = 4
	}
	train := &shardWriter{dir: stage.Path(), split: "train", width: width, most: m.Settings.ShardTokens}
	val := &shardWriter{dir: stage.Path(), split: "val", width: width, most: m.Settings.ShardTokens}
	defer train.drop()
	defer val.drop()
	w := newWalker(p.sources, m.Settings.TextKey, p.options.phase("tokenizing"))
	err = p.run(ctx, w, func(s source, empty bool) {
		m.Inputs[s.input].Documents++
		if empty {
			m.EmptyDocuments++
		}
	}, func(seg segment, ids []int32) error {
		if seg.val {
			return val.put(ctx, seg, ids)
		}
		return train.put(ctx, seg, ids)
	})
	if err != nil {
		return err
	}
	for _, s := range []*shardWriter{train, val} {
		if err := s.end(); err != nil {
			return err
		}
		m.Files = append(m.Files, s.files...)
	}
	m.Train, m.Val = train.Counts, val.Counts
	if w.repairs > 0 {
		m.Warnings = append(m.Warnings, fmt.Sprintf("%d documents escape half a character (a surrogate without its other half), which was read as U+FFFD", w.repairs))
	}
	var b bytes.Buffer
	if err := tokens.Save(&b, p.tokenizer); err != nil {
		return fmt.Errorf("write dataset: %w", err)
	}
	m.Files = append(m.Files, FileInfo{Name: TokenizerName, Bytes: int64(b.Len()), SHA256: hashBytes(b.Bytes())})
	if err := files.WriteFile(filepath.Join(stage.Path(), TokenizerName), b.Bytes()); err != nil {
		return fmt.Errorf("write dataset: %w", err)
	}
	m.DatasetHash = datasetHash(m.Files)
	if err := m.write(stage.Path()); err != nil {
		return fmt.Errorf("write dataset: %w", err)
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := checkTarget(out, p.options.Force); err != nil { // somebody may have written there meanwhile
		return err
	}
	return stage.Publish()
}

// write writes the manifest into a folder.
func (m *Manifest) write(dir string) error {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(m); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, ManifestName), b.Bytes(), 0o644)
}
