package cli

import (
	"io"
	"os"
	"strings"

	"golang.org/x/term"
)

// Streams are the standard streams of a command, replaceable in tests.
// Results go to Out; progress, warnings and errors go to Err.
type Streams struct {
	In       io.Reader
	Out, Err io.Writer
	log      *logging // how messages look; nil: plain lines
}

// Standard returns the process's own streams. One that ends with its parent has
// nothing to read.
func Standard() *Streams {
	s := &Streams{In: os.Stdin, Out: os.Stdout, Err: os.Stderr}
	if ParentGone() != nil {
		s.In = strings.NewReader("")
	}
	return s
}

// IsTerminal reports whether w is a terminal.
func IsTerminal(w io.Writer) bool {
	f := file(w)
	return f != nil && term.IsTerminal(int(f.Fd()))
}

// Width is the number of columns of a terminal, 0 where w is none.
func Width(w io.Writer) int {
	f := file(w)
	if f == nil {
		return 0
	}
	width, _, err := term.GetSize(int(f.Fd()))
	if err != nil {
		return 0
	}
	return width
}
