package files

import (
	"bytes"
	"io"
	"os"
)

// headBytes is how much of a file its kind is told from.
const headBytes = 64 << 10

// head returns the first bytes of a file, fewer where it cannot be read.
func head(path string) []byte {
	f, err := os.Open(path)
	if err != nil {
		return nil
	}
	defer f.Close()
	b, _ := io.ReadAll(io.LimitReader(f, headBytes)) // what cannot be read is of no kind
	return b
}

// Pictures and submissions, told from their first bytes.
var (
	PNG        = Kind{"PNG picture", func(path string) bool { return bytes.HasPrefix(head(path), []byte("\x89PNG\r\n\x1a\n")) }}
	SVG        = Kind{"SVG picture", func(path string) bool { return bytes.Contains(head(path), []byte("<svg")) }}
	PDF        = Kind{"PDF document", func(path string) bool { return bytes.HasPrefix(head(path), []byte("%PDF-")) }}
	Submission = Kind{"submission", func(path string) bool {
		b := bytes.TrimSpace(head(path))
		return bytes.HasPrefix(b, []byte("{")) && bytes.Contains(b, []byte(`"attempt_1"`))
	}}
)
