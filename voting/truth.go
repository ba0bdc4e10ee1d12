package voting

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"

	"deeploop/arc"
)

// CheckTruth refuses a ground truth that cannot be scored against: without
// test inputs, or with one task name twice.
func CheckTruth(tasks []arc.Task) error {
	tests := 0
	seen := make(map[string]arc.Task, len(tasks))
	for _, t := range tasks {
		if other, dup := seen[t.ID]; dup {
			return &Error{fmt.Errorf("the ground truth has two tasks named %q (%s and %s): name one split, such as the folder evaluation",
				t.ID, other.File, t.File)}
		}
		seen[t.ID] = t
		tests += len(t.Test)
	}
	if tests == 0 {
		return &Error{errors.New("the ground truth has no test input, so there is nothing to score")}
	}
	return nil
}

// HashTruth is the sha256 over the names, test inputs and outputs of the tasks
// in the order of their names: the same for the same tasks in another order or
// layout, different when a single cell is. Corpora were corrected over time,
// so a score should name it. It is "" where a test input is not known, as in
// Kaggle's solutions.
func HashTruth(tasks []arc.Task) string {
	for _, t := range tasks {
		for _, p := range t.Test {
			if p.Input.Empty() {
				return ""
			}
		}
	}
	return hashTasks(tasks, func(p arc.Pair) string { return keyOf(p.Input) + keyOf(p.Output) })
}

// HashOutputs is HashTruth over names and outputs alone, for two who hold the
// same right answers with and without the inputs.
func HashOutputs(tasks []arc.Task) string {
	return hashTasks(tasks, func(p arc.Pair) string { return keyOf(p.Output) })
}

func hashTasks(tasks []arc.Task, text func(arc.Pair) string) string {
	sorted := slices.Clone(tasks)
	slices.SortStableFunc(sorted, func(a, b arc.Task) int { return strings.Compare(a.ID, b.ID) })
	h := sha256.New()
	for _, t := range sorted {
		fmt.Fprintf(h, "%d:%s %d\n", len(t.ID), t.ID, len(t.Test))
		for _, p := range t.Test {
			h.Write([]byte(text(p)))
		}
	}
	return hex.EncodeToString(h.Sum(nil))
}

// Compare names what differs between two versions of a ground truth: tasks
// that only one has, and test pairs that are not the same. Outputs that one
// side does not label and inputs that one side does not hold are no
// difference.
func Compare(a, b []arc.Task) (onlyA, onlyB []string, changed []TestInput) {
	other := make(map[string]arc.Task, len(b))
	for _, t := range b {
		other[t.ID] = t
	}
	for _, t := range a {
		u, ok := other[t.ID]
		if !ok {
			onlyA = append(onlyA, t.ID)
			continue
		}
		delete(other, t.ID)
		for i := range max(len(t.Test), len(u.Test)) {
			if i >= len(t.Test) || i >= len(u.Test) || !samePair(t.Test[i], u.Test[i]) {
				changed = append(changed, TestInput{t.ID, i})
			}
		}
	}
	for _, t := range b {
		if _, ok := other[t.ID]; ok {
			onlyB = append(onlyB, t.ID)
		}
	}
	return onlyA, onlyB, changed
}

func samePair(p, q arc.Pair) bool {
	same := func(g, h arc.Grid) bool { return g.Empty() || h.Empty() || g.Equal(h) }
	return same(p.Input, q.Input) && same(p.Output, q.Output)
}
