package arc

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"path"
)

//go:generate go run ./internal/gensamples -out samples -seed 1

//go:embed samples
var sampleFiles embed.FS

// Samples returns the tasks that come with the program, in the layout of
// ARC-AGI: evaluation and training, one rule a task, on grids up to 10x10.
// They were made for this project by internal/gensamples.
func Samples() (*Corpus, error) {
	l := &loader{corpus: &Corpus{}}
	for _, split := range []string{"evaluation", "training"} {
		dir := path.Join("samples", split)
		entries, err := sampleFiles.ReadDir(dir) // by name
		if err != nil {
			return nil, err
		}
		start := len(l.corpus.Tasks)
		for _, e := range entries {
			file := path.Join(dir, e.Name())
			data, err := sampleFiles.ReadFile(file)
			if err != nil {
				return nil, err
			}
			sum := sha256.Sum256(data)
			l.corpus.Sources = append(l.corpus.Sources, Source{File: file, SHA256: hex.EncodeToString(sum[:])})
			content, err := parseFile(file, stemOf(file), data, &l.notes)
			if err != nil {
				return nil, err
			}
			l.add(content.tasks, split, split == "evaluation")
		}
		l.endGroup(split, dir, start)
	}
	l.corpus.Warnings = l.notes.warnings()
	return l.corpus, nil
}
