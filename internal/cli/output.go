package cli

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"sync"
)

// output is the standard output of a command. It remembers the first write that
// failed, as most commands print without looking: what was not printed must not
// end with exit code 0. A pipe that nobody reads any more ends the process
// without a word, as Go does for a standard output.
type output struct {
	w io.Writer

	mu    sync.Mutex
	first error
}

// Write writes through.
func (o *output) Write(p []byte) (int, error) {
	n, err := o.w.Write(p)
	if err == nil {
		return n, nil
	}
	var path *fs.PathError
	if errors.As(err, &path) {
		err = path.Err // its name for the stream helps nobody
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.first == nil {
		o.first = fmt.Errorf("write to standard output: %w", err)
	}
	return n, o.first
}

// failed is the first error of a write, nil where none failed.
func (o *output) failed() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.first
}

// file is the file that a writer writes to, nil where it is none.
func file(w io.Writer) *os.File {
	for {
		o, wrapped := w.(*output)
		if !wrapped {
			f, _ := w.(*os.File)
			return f
		}
		w = o.w
	}
}

// onceEach leaves lines out that were there before: several parts of a command
// may have met the same failure.
func onceEach(text string) string {
	var kept []string
	seen := map[string]bool{}
	for _, line := range strings.Split(text, "\n") {
		if !seen[line] {
			kept = append(kept, line)
		}
		seen[line] = true
	}
	return strings.Join(kept, "\n")
}
