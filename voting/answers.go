package voting

import (
	"fmt"

	"deeploop/arc"
)

// Check holds a submission against the ground truth. The denominators are the
// ground truth's: what the submission leaves out is wrong. Task names the
// ground truth does not have and entries beyond a task's test inputs are an
// *Error that names them all, since the two then belong to different sets.
func (s Submission) Check(tasks []arc.Task) ([]TaskResult, error) {
	place := make(map[string]int, len(tasks))
	results := make([]TaskResult, len(tasks))
	for i, t := range tasks {
		place[t.ID] = i
		results[i] = TaskResult{ID: t.ID, Tests: make([]TestResult, len(t.Test))}
		for j, p := range t.Test {
			results[i].Tests[j].Labelled = p.Labelled()
		}
	}
	var problems []error
	for _, a := range s {
		i, ok := place[a.ID]
		if !ok {
			problems = append(problems, fmt.Errorf("task %q is not in the ground truth", a.ID))
			continue
		}
		want := tasks[i].Test
		if len(a.Tests) > len(want) {
			problems = append(problems, fmt.Errorf("task %q has %d entries, expected %d, one per test input", a.ID, len(a.Tests), len(want)))
			continue
		}
		for j, grids := range a.Tests {
			r := &results[i].Tests[j]
			for k, g := range grids {
				if g.Empty() {
					continue
				}
				r.Answered = true
				if r.Rank == 0 && r.Labelled && g.Equal(want[j].Output) {
					r.Rank = k + 1
				}
			}
		}
	}
	return results, join(problems)
}

// NotMade lists the attempts a submission leaves out, of the two expected:
// Kaggle refuses such a file, here they count as wrong.
func (s Submission) NotMade() []string {
	var missing []string
	for _, a := range s {
		for i, grids := range a.Tests {
			for k := range Attempts {
				if k >= len(grids) || grids[k].Empty() {
					missing = append(missing, fmt.Sprintf("%s test[%d].attempt_%d", a.ID, i, k+1))
				}
			}
		}
	}
	return missing
}

// Beyond lists the attempts after the second, which no score of the ARC Prize
// counts.
func (s Submission) Beyond() []string {
	var more []string
	for _, a := range s {
		for i, grids := range a.Tests {
			for k := Attempts; k < len(grids); k++ {
				if !grids[k].Empty() {
					more = append(more, fmt.Sprintf("%s test[%d].attempt_%d", a.ID, i, k+1))
				}
			}
		}
	}
	return more
}
