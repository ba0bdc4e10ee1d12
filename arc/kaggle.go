package arc

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// Kaggle's combined files come in pairs, spelt arc-agi_evaluation_challenges.json
// and arc-agi_evaluation_solutions.json, or with hyphens before the last word.

// stemOf returns the file name without .json.
func stemOf(path string) string {
	return strings.TrimSuffix(filepath.Base(path), filepath.Ext(path))
}

// combinedStem returns the file stem before "challenges" or "solutions" and
// its separator.
func combinedStem(path, word string) (string, bool) {
	rest, ok := strings.CutSuffix(stemOf(path), word)
	if !ok || rest != "" && !strings.HasSuffix(rest, "_") && !strings.HasSuffix(rest, "-") {
		return "", false
	}
	return rest, true
}

func isChallenges(path string) bool { _, ok := combinedStem(path, "challenges"); return ok }
func isSolutions(path string) bool  { _, ok := combinedStem(path, "solutions"); return ok }

// challengeSet is the group name of a combined file: "evaluation" for
// arc-agi_evaluation_challenges.json, else its stem.
func challengeSet(path string) string {
	rest, ok := combinedStem(path, "challenges")
	if !ok {
		return stemOf(path)
	}
	rest = strings.TrimRight(rest, "_-")
	rest = strings.TrimPrefix(rest, "arc-agi")
	return strings.TrimLeft(rest, "_-")
}

// solutions fills the test outputs of a combined file's tasks from the file
// beside it, if there is one.
func (l *loader) solutions(path string, tasks []Task) error {
	rest, ok := combinedStem(path, "challenges")
	if !ok {
		return nil
	}
	stem := strings.TrimRight(rest, "_-")
	names := []string{stem + "_solutions.json", stem + "-solutions.json"}
	if rest == "" {
		names = []string{"solutions.json"}
	}
	if strings.HasSuffix(rest, "-") {
		names[0], names[1] = names[1], names[0]
	}
	for _, name := range names {
		file := filepath.Join(filepath.Dir(path), name)
		_, err := os.Stat(file)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return unreadable(file, err)
		}
		l.again(file) // marks it as read
		data, err := l.bytes(file)
		if err != nil {
			return err
		}
		return l.applySolutions(file, path, data, tasks)
	}
	return nil
}

// applySolutions checks that the file has as many outputs for each task as the
// task has test inputs.
func (l *loader) applySolutions(file, challenges string, data []byte, tasks []Task) error {
	answers, order, err := parseSolutions(file, data, &l.notes)
	if err != nil {
		return err
	}
	known := make(map[string]bool, len(tasks))
	for i := range tasks {
		t := &tasks[i]
		known[t.ID] = true
		at := Error{File: file, Task: t.ID, Index: -1, Row: -1}
		grids, ok := answers[t.ID]
		switch {
		case !ok:
			at.Problem = fmt.Sprintf("is missing, expected %d %s: it is a task of %s",
				len(t.Test), plural(len(t.Test), "output", "outputs"), challenges)
			return &at
		case len(grids) != len(t.Test):
			at.Problem = fmt.Sprintf("has %d %s, expected %d, one for each test input in %s",
				len(grids), plural(len(grids), "output", "outputs"), len(t.Test), challenges)
			if len(grids) < len(t.Test) {
				at.Problem = fmt.Sprintf("test[%d] has no output: the task ", len(grids)) + at.Problem
			}
			return &at
		}
		for j, g := range grids {
			if t.Test[j].Labelled() && !t.Test[j].Output.Equal(g) {
				at.Section, at.Index, at.Part = "test", j, "output"
				at.Problem = "differs from the output in " + challenges + ", expected the same grid"
				return &at
			}
			t.Test[j].Output = g
		}
	}
	for _, id := range order {
		if !known[id] {
			l.notes.add("unknown solution", "ignored solutions of tasks that "+challenges+" does not have", id)
		}
	}
	return nil
}

// parseSolutions reads {"ID": [grid, ...], ...}.
func parseSolutions(file string, data []byte, n *notes) (map[string][]Grid, []string, error) {
	if err := checkText(file, data); err != nil {
		return nil, nil, err
	}
	p := &parser{cursor: cursor{data: data}, file: file, notes: n}
	answers := make(map[string][]Grid)
	var order []string
	err := p.object("an object with an array of outputs for each task", func(id string) error {
		at := place{task: id, section: "solutions", index: -1}
		grids := []Grid{}
		err := p.array("an array of outputs", func(i int) error {
			at.index = i
			g, err := p.grid(at)
			grids = append(grids, g)
			return err
		})
		if err != nil {
			return p.fail(at, -1, err)
		}
		answers[id] = grids
		order = append(order, id)
		return nil
	})
	if err == nil {
		err = p.end()
	}
	if err != nil {
		return nil, nil, p.fail(place{index: -1}, -1, err)
	}
	return answers, order, nil
}
