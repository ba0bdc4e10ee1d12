package augment

import (
	"encoding/json"
	"fmt"
	"os"
	"strconv"

	"deeploop/arc"
)

// TestPuzzles is test_puzzles.json: the ground truth of the held-out tasks and
// which identifier stands for which copy of which task, so that scoring needs
// neither the unaugmented rows nor the names of identifiers.
type TestPuzzles struct {
	// Tasks in the order of the test split's groups.
	Tasks []TestTask
}

// TestTask is one held-out task.
type TestTask struct {
	ID    string
	Split string // arc.Task.Split
	// Tests are the held-out pairs in the task's order. The output of an
	// unlabelled one is empty.
	Tests []arc.Pair
	// Identifiers and Augmentations describe the copies; the first one is the
	// task as it is.
	Identifiers   []int32
	Augmentations []Augmentation
}

const testPuzzlesVersion = 1

// testPuzzlesJSON writes test_puzzles.json for a plan:
//
//	{"version": 1, "tasks": [
//	 {"id": "...", "split": "evaluation",
//	  "tests": [{"input": [[...]], "output": [[...]]}, {"input": [[...]], "output": null, "unlabelled": true}],
//	  "copies": {"identifiers": [...], "dihedral": "0315...", "colors": ["0123456789", ...]}},
//	 ...]}
func testPuzzlesJSON(p *plan, s *splitPlan) []byte {
	b := fmt.Appendf(nil, `{"version": %d, "tasks": [`, testPuzzlesVersion)
	for i, g := range s.groups {
		if i > 0 {
			b = append(b, ',')
		}
		t := &p.tasks[g.task]
		b = append(b, "\n {\"id\": "...)
		b = appendPyString(b, t.ID)
		b = append(b, `, "split": `...)
		b = appendPyString(b, t.Split)
		b = append(b, ",\n  \"tests\": ["...)
		for j, pair := range g.pairs {
			if j > 0 {
				b = append(b, ", "...)
			}
			b = append(b, `{"input": `...)
			b = pair.Input.AppendJSON(b)
			b = append(b, `, "output": `...)
			if pair.Labelled() {
				b = pair.Output.AppendJSON(b)
			} else {
				b = append(b, `null, "unlabelled": true`...)
			}
			b = append(b, '}')
		}
		b = append(b, "],\n  \"copies\": {\"identifiers\": ["...)
		copies := p.copies[t.first : t.first+t.count]
		for k := range copies {
			if k > 0 {
				b = append(b, ',')
			}
			b = strconv.AppendInt(b, int64(p.names.of(g.task, k)), 10)
		}
		b = append(b, `], "dihedral": "`...)
		for _, a := range copies {
			b = append(b, '0'+byte(a.Dihedral))
		}
		b = append(b, `", "colors": [`...)
		for k, a := range copies {
			if k > 0 {
				b = append(b, ',')
			}
			b = append(b, '"')
			b = append(b, a.Colors.String()...)
			b = append(b, '"')
		}
		b = append(b, "]}}"...)
	}
	return append(b, "]}\n"...)
}

// ReadTestPuzzles reads a test_puzzles.json.
func ReadTestPuzzles(path string) (*TestPuzzles, error) {
	raw, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var file struct {
		Version int
		Tasks   []struct {
			ID, Split string
			Tests     []struct{ Input, Output [][]int }
			Copies    struct {
				Identifiers []int32
				Dihedral    string
				Colors      []string
			}
		}
	}
	if err := json.Unmarshal(raw, &file); err != nil {
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	if file.Version != testPuzzlesVersion {
		return nil, fmt.Errorf("read %s: version is %d, expected %d", path, file.Version, testPuzzlesVersion)
	}
	p := &TestPuzzles{Tasks: make([]TestTask, len(file.Tasks))}
	for i, t := range file.Tasks {
		out := TestTask{ID: t.ID, Split: t.Split, Identifiers: t.Copies.Identifiers}
		n := len(t.Copies.Identifiers)
		if n == 0 || len(t.Copies.Dihedral) != n || len(t.Copies.Colors) != n {
			return nil, fmt.Errorf("read %s: task %q has %d identifiers, %d transforms and %d permutations, expected as many of each and at least one",
				path, t.ID, n, len(t.Copies.Dihedral), len(t.Copies.Colors))
		}
		for k := range n {
			d := int(t.Copies.Dihedral[k]) - '0'
			if d < 0 || d >= NumDihedral {
				return nil, fmt.Errorf("read %s: task %q has transform %q, expected 0 to 7", path, t.ID, t.Copies.Dihedral[k])
			}
			c, err := ParseColors(t.Copies.Colors[k])
			if err != nil {
				return nil, fmt.Errorf("read %s: task %q: %w", path, t.ID, err)
			}
			out.Augmentations = append(out.Augmentations, Augmentation{d, c})
		}
		for j, pair := range t.Tests {
			in, err := gridOf(pair.Input)
			if err == nil && in.Empty() {
				err = fmt.Errorf("no cells")
			}
			if err != nil {
				return nil, fmt.Errorf("read %s: task %q test %d input: %w", path, t.ID, j, err)
			}
			answer, err := gridOf(pair.Output)
			if err != nil {
				return nil, fmt.Errorf("read %s: task %q test %d output: %w", path, t.ID, j, err)
			}
			out.Tests = append(out.Tests, arc.Pair{Input: in, Output: answer})
		}
		p.Tasks[i] = out
	}
	return p, nil
}

func gridOf(rows [][]int) (arc.Grid, error) {
	if len(rows) == 0 {
		return arc.Grid{}, nil
	}
	if len(rows) > arc.MaxSide || len(rows[0]) > arc.MaxSide || len(rows[0]) == 0 {
		return arc.Grid{}, fmt.Errorf("%d rows of %d cells, expected 1 to %d of each", len(rows), len(rows[0]), arc.MaxSide)
	}
	g := arc.NewGrid(len(rows), len(rows[0]))
	for r, row := range rows {
		if len(row) != g.Cols {
			return g, fmt.Errorf("row %d has %d cells, expected %d", r, len(row), g.Cols)
		}
		for c, v := range row {
			if v < 0 || v >= arc.NumColors {
				return g, fmt.Errorf("row %d has colour %d, expected 0 to %d", r, v, arc.NumColors-1)
			}
			g.Set(r, c, uint8(v))
		}
	}
	return g, nil
}
