package cli

import (
	"io"
	"os"

	"golang.org/x/term"
)

// Streams are the standard streams of a command, replaceable in tests.
// Results go to Out; progress, warnings and errors go to Err.
type Streams struct {
	In       io.Reader
	Out, Err io.Writer
}

// Standard returns the process's own streams.
func Standard() *Streams { return &Streams{In: os.Stdin, Out: os.Stdout, Err: os.Stderr} }

// IsTerminal reports whether w is a terminal.
func IsTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}
