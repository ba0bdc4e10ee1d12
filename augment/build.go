package augment

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"sync"

	"deeploop/arc"
	"deeploop/internal/staging"
	"deeploop/internal/wording"
)

// BuildOptions are what a build needs besides its settings.
type BuildOptions struct {
	Settings Settings
	// Tasks are the ids to keep; nil keeps all.
	Tasks []string
	// Force replaces an existing dataset, once the new one is complete.
	Force bool
	// Progress, if given, is called now and then with the bytes written so
	// far and in total. Calls do not overlap.
	Progress func(done, total int64)
	// DiskFree, if given, returns the bytes that may still be written below a
	// folder; a build that needs more is refused before it starts.
	DiskFree func(dir string) (uint64, error)
}

// Build writes the dataset of a corpus to the folder out: for the same
// settings and tasks the same bytes as the reference builder. Only a few bytes
// per example are held in memory. The folder appears when it is complete; an
// error or a cancelled context leaves nothing behind and an existing dataset
// as it was. Same seed, same bytes, on any machine.
func Build(ctx context.Context, corpus *arc.Corpus, out string, opt BuildOptions) (*Manifest, error) {
	if err := opt.Settings.Check(); err != nil {
		return nil, err
	}
	out = filepath.Clean(out)
	if real, err := filepath.EvalSymlinks(out); err == nil {
		out = real
	}
	if err := checkTarget(out, opt.Force); err != nil {
		return nil, err
	}
	sel, err := choose(corpus, opt.Tasks, opt.Settings.MaxGrid)
	if err != nil {
		return nil, err
	}
	p, err := newPlan(ctx, sel.groups, opt.Settings, math.MaxInt32)
	if err != nil {
		return nil, err
	}
	p.split("train") // both splits are always written,
	p.split("test")  // an empty one with arrays of no rows
	b := &builder{plan: p, options: opt, small: smallFiles(p)}
	if err := b.checkDisk(out); err != nil {
		return nil, err
	}
	m := newManifest(p, sel, corpus)
	if err := b.write(ctx, out, m); err != nil {
		return nil, err
	}
	return m, nil
}

// builder writes one plan.
type builder struct {
	plan    *plan
	options BuildOptions
	small   []smallFile

	mu   sync.Mutex
	done int64
}

type smallFile struct {
	name    string
	content []byte
}

// smallFiles are all but the two large arrays of each split.
func smallFiles(p *plan) []smallFile {
	files := []smallFile{{"identifiers.json", p.names.json()}}
	seqLen := p.settings.MaxGrid * p.settings.MaxGrid
	for _, s := range p.splits {
		files = append(files,
			smallFile{s.name + "/all__puzzle_identifiers.npy", npyInt32(s.identifiers)},
			smallFile{s.name + "/all__puzzle_indices.npy", npyInt32(s.puzzleAt)},
			smallFile{s.name + "/all__group_indices.npy", npyInt32(s.groupAt)},
			smallFile{s.name + "/dataset.json", datasetJSON(s, seqLen, p.names.count())})
		if s.name == "test" {
			files = append(files, smallFile{TestPuzzlesName, testPuzzlesJSON(p, s)})
		}
	}
	return files
}

// TestPuzzlesName is the file of the ground truth in a dataset folder.
const TestPuzzlesName = "test_puzzles.json"

// rowBytes is the size of the large arrays without their heads.
func (b *builder) rowBytes() int64 {
	side := int64(b.plan.settings.MaxGrid)
	var n int64
	for _, s := range b.plan.splits {
		n += 2 * int64(s.examples()) * side * side
	}
	return n
}

// zstdRatio is a cautious guess of how much smaller compressed arrays are.
const zstdRatio = 8

// checkDisk refuses a build that the disk has no room for.
func (b *builder) checkDisk(out string) error {
	if b.options.DiskFree == nil {
		return nil
	}
	need := b.rowBytes()
	if b.plan.settings.Compress != "" {
		need /= zstdRatio
	}
	for _, f := range b.small {
		need += int64(len(f.content))
	}
	need += 1 << 20 // heads, manifest, folders
	dir := filepath.Dir(out)
	for {
		if _, err := os.Stat(dir); err == nil {
			break
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return nil
		}
		dir = parent
	}
	free, err := b.options.DiskFree(dir)
	if err != nil {
		return nil // unknown: a full disk is still noticed while writing
	}
	if free < uint64(need) {
		about, smaller := "", " or --compress zstd"
		if b.plan.settings.Compress != "" {
			about, smaller = "about ", ""
		}
		return fmt.Errorf("write dataset %s: it needs %s%s and the disk has %s free; make room, choose another --out, fewer copies (--num-aug)%s",
			out, about, wording.Bytes(uint64(need)), wording.Bytes(free), smaller)
	}
	return nil
}

// write fills a hidden folder and moves it to out.
func (b *builder) write(ctx context.Context, out string, m *Manifest) (err error) {
	stage, err := staging.New(out)
	if err != nil {
		return fmt.Errorf("write dataset: %w", err)
	}
	defer func() { err = cmp.Or(err, stage.Remove()) }()
	o := &output{dir: stage.Path(), compress: b.plan.settings.Compress == Zstd, progress: b.advance, files: m.Files}
	if err := b.fill(ctx, o); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	m.DatasetHash = datasetHash(m.Files)
	if err := m.write(stage.Path()); err != nil {
		return err
	}
	if err := checkTarget(out, b.options.Force); err != nil { // somebody may have written there meanwhile
		return err
	}
	return stage.Publish()
}

// fill writes all files but the manifest.
func (b *builder) fill(ctx context.Context, o *output) error {
	for _, f := range b.small {
		if err := o.file(f.name, f.content); err != nil {
			return err
		}
	}
	for _, s := range b.plan.splits {
		var wg sync.WaitGroup
		ctx, cancel := context.WithCancel(ctx)
		errs := make([]error, 2)
		for i, kind := range []string{"inputs", "labels"} {
			wg.Go(func() {
				r := newRenderer(b.plan, s, kind == "labels")
				errs[i] = o.rows(ctx, s.name+"/all__"+kind+".npy", s.examples(), r)
				if errs[i] != nil {
					cancel()
				}
			})
		}
		wg.Wait()
		cancel()
		if err := firstCause(errs); err != nil {
			return err
		}
	}
	return nil
}

// firstCause prefers an error that is not a consequence of another's.
func firstCause(errs []error) error {
	var found error
	for _, err := range errs {
		if err != nil && (found == nil || errors.Is(found, context.Canceled)) {
			found = err
		}
	}
	return found
}

// advance reports progress.
func (b *builder) advance(n int64) {
	if b.options.Progress == nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.done += n
	b.options.Progress(b.done, b.rowBytes())
}
