// Package voting turns predictions into scores: it crops the grid out of each
// predicted canvas, undoes the row's augmentation, counts equal answers of a
// test input as votes, ranks them, and scores the ranking, or anyone's
// submission, under three conventions. It follows the evaluator of the
// reference HRM code (arc_eval.ipynb). It is pure: grids in, numbers out.
//
// An answer's votes are the augmented copies that give it; the answer with
// more votes ranks higher, among equals the one with the higher mean halt
// probability, and among those the one seen first in row order. That order is
// the same in every run.
//
// Words: a task has test inputs; a test input has one right output, unless it
// is unlabelled; an answer is right when the whole grid is.
package voting

import (
	"errors"
	"fmt"
)

// Error is a mistake in what was handed in: predictions that do not belong to
// the tasks, or a malformed submission.
type Error struct{ Err error }

func (e *Error) Error() string { return e.Err.Error() }
func (e *Error) Unwrap() error { return e.Err }

// BadInput tells the command line that the input is at fault.
func (e *Error) BadInput() bool { return true }

// maxNamed is how many problems of one kind of input are spelt out.
const maxNamed = 40

// join makes one Error of several problems, nil of none.
func join(problems []error) error {
	if len(problems) == 0 {
		return nil
	}
	if more := len(problems) - maxNamed; more > 0 {
		problems = append(problems[:maxNamed:maxNamed], fmt.Errorf("and %d more", more))
	}
	return &Error{errors.Join(problems...)}
}
