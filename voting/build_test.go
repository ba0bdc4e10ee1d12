package voting_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"deeploop/arc"
	"deeploop/voting"
)

// grid reads "12/34": rows of digits.
func grid(s string) arc.Grid {
	if s == "" {
		return arc.Grid{}
	}
	rows := strings.Split(s, "/")
	g := arc.NewGrid(len(rows), len(rows[0]))
	for r, row := range rows {
		for c := range row {
			g.Set(r, c, row[c]-'0')
		}
	}
	return g
}

// canvas writes a grid as the dataset builder does: colours, then end markers
// where there is room.
func canvas(g arc.Grid, side int) []uint8 {
	t := make([]uint8, side*side)
	for r := range g.Rows {
		for c := range g.Cols {
			t[r*side+c] = g.At(r, c) + 2
		}
		if g.Cols < side {
			t[r*side+g.Cols] = 1
		}
	}
	for c := range g.Cols {
		if g.Rows < side {
			t[g.Rows*side+c] = 1
		}
	}
	return t
}

// plain takes identifier i+1 for task i, unaugmented.
type plain int

func (p plain) Task(id int32) int {
	if id < 1 || int(id) > int(p) {
		return -1
	}
	return int(id) - 1
}

func (plain) Undo(_ int32, g arc.Grid) arc.Grid { return g }

// vote is one row: task, test input, answer, halt logit.
type vote struct {
	task, test int
	answer     string
	q          float32
}

// task makes a task from "input>output" tests.
func task(id string, tests ...string) arc.Task {
	t := arc.Task{ID: id}
	for _, s := range tests {
		in, out, _ := strings.Cut(s, ">")
		t.Test = append(t.Test, arc.Pair{Input: grid(in), Output: grid(out)})
	}
	return t
}

const side = 10

// rows makes a batch; indexed says whether rows carry their test index or
// their input.
func rows(tasks []arc.Task, votes []vote, indexed bool) voting.Rows {
	var b voting.Rows
	for _, v := range votes {
		b.Identifiers = append(b.Identifiers, int32(v.task+1))
		b.QHalt = append(b.QHalt, v.q)
		b.Preds = append(b.Preds, canvas(grid(v.answer), side)...)
		if indexed {
			b.TestIndex = append(b.TestIndex, int32(v.test))
		} else {
			b.Inputs = append(b.Inputs, canvas(tasks[v.task].Test[v.test].Input, side)...)
		}
	}
	return b
}

// tally counts votes both ways and requires the same result.
func tally(t *testing.T, tasks []arc.Task, votes ...vote) *voting.Votes {
	t.Helper()
	var got [2]*voting.Votes
	for i := range got {
		c := voting.NewCounter(tasks, plain(len(tasks)), side, 2)
		require.NoError(t, c.Add(rows(tasks, votes, i == 1)))
		got[i] = c.Votes()
	}
	require.Equal(t, fmt.Sprintf("%+v", got[0]), fmt.Sprintf("%+v", got[1])) // a NaN equals itself here
	return got[0]
}

// ranking is the ranked answers of a test input as digits.
func ranking(t voting.TestVotes) []string {
	var s []string
	for _, c := range t.Ranked {
		s = append(s, strings.Join(digits(c.Grid()), "/"))
	}
	return s
}
