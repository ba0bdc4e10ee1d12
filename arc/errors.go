package arc

import (
	"fmt"
	"strings"
)

// Error is bad input: a file that is not an ARC task, or not readable as one.
// Programs answer it with exit code 2.
//
// Indices and rows count from 0, as in the file itself: `train[2].output row 3`
// is the fourth row of the output of the third demonstration.
type Error struct {
	File    string // path of the file or folder; "" when there is none
	Task    string // task in a combined file, else ""
	Section string // "train", "test", "solutions" or ""
	Index   int    // pair in the section; -1 when the whole section is meant
	Part    string // "input", "output" or ""
	Row     int    // row of the grid; -1 when the whole grid is meant
	Problem string // what was found and what is expected
}

func (e *Error) Error() string {
	var b strings.Builder
	if e.File != "" {
		b.WriteString(Printable(e.File) + ": ")
	}
	if e.Task != "" {
		fmt.Fprintf(&b, "task %q: ", e.Task)
	}
	if e.Section != "" {
		b.WriteString(e.Section)
		if e.Index >= 0 {
			fmt.Fprintf(&b, "[%d]", e.Index)
		}
		if e.Part != "" {
			b.WriteString("." + e.Part)
		}
		b.WriteByte(' ')
		if e.Row >= 0 {
			fmt.Fprintf(&b, "row %d ", e.Row)
		}
	}
	b.WriteString(e.Problem)
	return b.String()
}

// BadInput marks the error as the input's fault, not the program's.
func (e *Error) BadInput() bool { return true }

// fileErrorf is an Error about a whole file or folder.
func fileErrorf(file, format string, args ...any) *Error {
	return &Error{File: file, Index: -1, Row: -1, Problem: fmt.Sprintf(format, args...)}
}
