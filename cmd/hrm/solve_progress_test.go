package main

import (
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"deeploop/arc"
	"deeploop/hrm/solve"
	"deeploop/internal/cli"
)

// Before a row has halted there is no share of right cells to tell.
func TestSolveProgressBeforeAnyRowHalted(t *testing.T) {
	var errs strings.Builder
	q := newSolveProgress(&cli.Streams{Out: io.Discard, Err: &errs}, 1)
	q.at("a", solve.State{Step: 1, Loss: 2})
	require.Equal(t, "a: step 1 (0%), loss 2", q.line())
	q.at("a", solve.State{Step: 2, Loss: 1, Halted: true, Cells: 0.5})
	require.Equal(t, "a: step 2 (0%), loss 1, cells 50.0%, grids 0%", q.line())
}

// Where time was up before any copy voted, no attempt is called the other one.
func TestSheetWithoutAnswers(t *testing.T) {
	task := sampleTask(t, "halo")
	d := &solved{task: task, answers: &solve.Answers{Tests: make([]solve.Test, len(task.Test))}}
	var b strings.Builder
	require.NoError(t, showAnswers(&b, d, arc.TextOptions{}))
	require.Contains(t, b.String(), "test[0] attempt 1: no answer")
	require.NotContains(t, b.String(), "no other answer")
}
