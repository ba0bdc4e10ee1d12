package voting

import (
	"bufio"
	"encoding/json"
	"io"
	"strconv"

	"deeploop/arc"
)

// Submission is answers in the form of Kaggle's ARC Prize, in task order:
//
//	{"TASK": [{"attempt_1": [[0, 1], ...], "attempt_2": ...}, ...], ...}
//
// with one entry per test input in the order of the task.
type Submission []TaskAnswers

// TaskAnswers is one task: Tests[i] holds the attempts at test input i. An
// empty grid is an attempt that was not made.
type TaskAnswers struct {
	ID    string
	Tests [][]arc.Grid
}

// Attempts is how many attempts a submission has at each test input.
const Attempts = 2

// Submission takes the two best answers of every test input, labelled or not.
// Where the predictions have no such answer the attempt is [[0]]: no grid of a
// submission is ever empty. A 0x0 answer keeps its rank in the ladder but
// cannot be submitted, and no attempt is spent on it. Distinct answers are
// distinct grids, so the attempts differ wherever there are two.
func (v *Votes) Submission() Submission {
	s := make(Submission, len(v.Tasks))
	for i, t := range v.Tasks {
		s[i] = TaskAnswers{ID: t.ID, Tests: make([][]arc.Grid, len(t.Tests))}
		for j, test := range t.Tests {
			grids := make([]arc.Grid, 0, Attempts)
			for _, c := range test.Ranked {
				if len(grids) == Attempts {
					break
				}
				if !c.Empty() {
					grids = append(grids, c.Grid())
				}
			}
			for len(grids) < Attempts {
				grids = append(grids, arc.NewGrid(1, 1))
			}
			s[i].Tests[j] = grids
		}
	}
	return s
}

// Write writes the submission as JSON, tasks in order.
func (s Submission) Write(w io.Writer) error {
	b := bufio.NewWriter(w)
	b.WriteByte('{')
	for i, t := range s {
		if i > 0 {
			b.WriteString(", ")
		}
		id, err := json.Marshal(t.ID)
		if err != nil {
			return err
		}
		b.Write(id)
		b.WriteString(": [")
		for j, grids := range t.Tests {
			if j > 0 {
				b.WriteString(", ")
			}
			b.WriteByte('{')
			for k, g := range grids {
				if k > 0 {
					b.WriteString(", ")
				}
				b.WriteString(`"attempt_` + strconv.Itoa(k+1) + `": `)
				b.Write(g.AppendJSON(nil))
			}
			b.WriteByte('}')
		}
		b.WriteByte(']')
	}
	b.WriteString("}\n")
	return b.Flush()
}
