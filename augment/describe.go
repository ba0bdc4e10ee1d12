package augment

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"deeploop/arc"
	"deeploop/internal/wording"
)

// newManifest describes a plan; files and the dataset's hash come later.
func newManifest(p *plan, sel *selection, corpus *arc.Corpus) *Manifest {
	folder := commonFolder(corpus.Sources)
	short := func(file string) string { return strings.TrimPrefix(filepath.ToSlash(file), folder) }
	m := &Manifest{
		Format: manifestFormat, Version: manifestVersion, Settings: p.settings,
		Files:      map[string]FileInfo{},
		ShortTasks: []ShortTask{}, SkippedTasks: []SkippedTask{}, SharedIDs: []SharedID{},
		Leaks: []Leak{}, TestInputInTrain: []PairRef{}, Warnings: []string{}, Sources: []arc.Source{},
	}
	for _, w := range corpus.Warnings {
		if len(folder) > len("./") { // no bare root
			w = strings.ReplaceAll(filepath.ToSlash(w), folder, "")
		}
		m.Warnings = append(m.Warnings, w)
	}
	for _, s := range corpus.Sources {
		m.Sources = append(m.Sources, arc.Source{File: short(s.File), SHA256: s.SHA256})
	}
	after := *p.after
	for i := range m.RNGNextUint32 {
		m.RNGNextUint32[i] = after.Uint32()
	}
	m.Counts = Counts{Tasks: len(p.tasks), Identifiers: p.names.count()}
	for _, s := range p.splits {
		c := SplitCounts{Groups: len(s.groups), Puzzles: s.puzzles(), Examples: s.examples()}
		if s.name == "train" {
			m.Counts.Train = c
		} else {
			m.Counts.Test = c
		}
	}
	tasks := make([]*arc.Task, len(p.tasks))
	for i, t := range p.tasks {
		tasks[i] = t.Task
		m.Tasks = append(m.Tasks, TaskInfo{ID: t.ID, Split: t.Split, File: short(t.File), HeldOut: t.HoldOut, Copies: t.count})
		if wanted := p.settings.NumAug + 1; t.count < wanted {
			m.ShortTasks = append(m.ShortTasks, ShortTask{t.ID, t.count, wanted})
		}
		if t.HoldOut {
			m.Counts.HeldOutTasks++
			m.Counts.TestPairs += len(t.Test)
		}
		for _, pair := range t.Test {
			if !pair.Labelled() {
				m.Counts.UnlabelledTests++
			}
		}
	}
	for _, t := range sel.skipped {
		rows, cols := largest(t)
		m.SkippedTasks = append(m.SkippedTasks, SkippedTask{t.ID, short(t.File), rows, cols})
	}
	leaks, inputs := findLeaks(tasks, short)
	m.Leaks = append(m.Leaks, leaks...)
	m.TestInputInTrain = append(m.TestInputInTrain, inputs...)
	m.addShared(p, short)
	m.warn(p)
	return m
}

// addShared lists tasks that share identifiers.
func (m *Manifest) addShared(p *plan, short func(string) string) {
	at := map[int]int{}
	for _, pair := range p.names.shared {
		a, b := p.tasks[pair[0]].Task, p.tasks[pair[1]].Task
		i, ok := at[pair[0]]
		if !ok {
			i = len(m.SharedIDs)
			at[pair[0]] = i
			m.SharedIDs = append(m.SharedIDs, SharedID{ID: a.ID, Files: []string{short(a.File)}, Identical: true})
		}
		s := &m.SharedIDs[i]
		s.Files = append(s.Files, short(b.File))
		s.Identical = s.Identical && content(a) == content(b)
	}
}

// content is equal for tasks with the same pairs, whatever their order and
// section.
func content(t *arc.Task) fingerprint {
	return newOrbit(append(append([]arc.Pair(nil), t.Train...), t.Test...)).fingerprint(Original())
}

// warn fills Warnings: one line per kind.
func (m *Manifest) warn(p *plan) {
	add := func(format string, args ...any) { m.Warnings = append(m.Warnings, fmt.Sprintf(format, args...)) }
	if n := len(m.Leaks); n > 0 {
		names := make([]string, n)
		for i, l := range m.Leaks {
			names[i] = fmt.Sprintf("%s = %s", l.Test, l.Train)
		}
		add("LEAK: %d of %d held-out test pairs are also training pairs, scores on them mean nothing: %s; all are listed in %s",
			n, m.Counts.TestPairs, wording.List(names, 3), ManifestName)
	}
	var differ, same []string
	for _, s := range m.SharedIDs {
		text := s.ID + " (" + strings.Join(s.Files, ", ") + ")"
		if s.Identical {
			same = append(same, text)
		} else {
			differ = append(differ, text)
		}
	}
	if len(differ) > 0 {
		add("%d ids belong to several tasks with different content, which share one task embedding as in the reference: %s; all are listed in %s",
			len(differ), wording.List(differ, 3), ManifestName)
	}
	if len(same) > 0 {
		add("%d tasks occur more than once and share one task embedding: %s; all are listed in %s", len(same), wording.List(same, 3), ManifestName)
	}
	if n := len(m.SkippedTasks); n > 0 {
		names := make([]string, n)
		for i, t := range m.SkippedTasks {
			names[i] = fmt.Sprintf("%s (%dx%d)", t.ID, t.Rows, t.Cols)
		}
		add("skipped %s with grids larger than %dx%d: %s", wording.Count(n, "task"), p.settings.MaxGrid, p.settings.MaxGrid, wording.List(names, 3))
	}
	unlabelled := 0
	for _, t := range p.tasks {
		for _, pair := range t.Test {
			if !t.HoldOut && !pair.Labelled() {
				unlabelled++
			}
		}
	}
	if unlabelled > 0 {
		add("left out %d test inputs without an output of tasks that are trained on", unlabelled)
	}
	if m.Counts.Test.Examples == 0 {
		add("no test pair is held out, so there is nothing to evaluate on; hold-out tasks come from a folder called evaluation, a flat folder, or Kaggle's files")
	}
}

// ShortSummary says in one line how many tasks have fewer copies than wanted,
// "" if none has.
func (m *Manifest) ShortSummary() string {
	if len(m.ShortTasks) == 0 {
		return ""
	}
	least := m.ShortTasks[0]
	missing := 0
	for _, t := range m.ShortTasks {
		missing += t.Wanted - t.Copies
		if t.Copies < least.Copies {
			least = t
		}
	}
	return fmt.Sprintf("%d of %d tasks have fewer than %d different copies (symmetric or with few colours): %d copies fewer, least %s with %d",
		len(m.ShortTasks), m.Counts.Tasks, least.Wanted, missing, least.ID, least.Copies)
}

// commonFolder returns, with a slash at the end, what the folders of all
// sources begin with. Names are given without it, so that a manifest does not
// depend on where the input lay.
func commonFolder(sources []arc.Source) string {
	var common []string
	for i, s := range sources {
		parts := strings.Split(filepath.ToSlash(filepath.Dir(s.File)), "/")
		if i == 0 {
			common = parts
			continue
		}
		n := 0
		for n < len(common) && n < len(parts) && common[n] == parts[n] {
			n++
		}
		common = common[:n]
	}
	if len(common) == 0 {
		return ""
	}
	return strings.Join(common, "/") + "/"
}

// write writes the manifest, the last file of a dataset.
func (m *Manifest) write(dir string) error {
	raw, err := json.MarshalIndent(m, "", " ")
	if err != nil {
		return err
	}
	f, err := os.OpenFile(filepath.Join(dir, ManifestName), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
	if err != nil {
		return fmt.Errorf("write manifest: %w", err)
	}
	_, err = f.Write(append(raw, '\n'))
	if err == nil {
		err = f.Sync()
	}
	if e := f.Close(); err == nil {
		err = e
	}
	if err != nil {
		return fmt.Errorf("write manifest: %w", err)
	}
	return nil
}
