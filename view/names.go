package view

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"deeploop/augment"
)

// names finds the name of an identifier in identifiers.json without holding
// them all: a large dataset has a million.
type names struct {
	path string
	at   []int64 // where each name ends in the file
}

// openNames notes where the names of a dataset are.
func openNames(d *augment.Dataset) (*names, error) {
	n := &names{path: filepath.Join(d.Dir, "identifiers.json"), at: make([]int64, 0, d.NumIdentifiers())}
	f, err := os.Open(n.path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if err := n.scan(bufio.NewReaderSize(f, 1<<16), d.NumIdentifiers()); err != nil {
		return nil, n.bad(err)
	}
	return n, nil
}

// scan notes where the strings of a JSON list of so many end. A decoder would
// take seconds for a million; what is between the quotes is decoded when it is
// asked for.
func (n *names) scan(r *bufio.Reader, want int) error {
	var offset int64
	var begun, ended, quoted, escaped, due bool // due: a string may come next
	for {
		if _, err := r.Peek(1); err == io.EOF {
			break
		} else if err != nil {
			return err
		}
		block, _ := r.Peek(r.Buffered()) // what is there, without an error
		for _, c := range block {
			offset++
			switch {
			case escaped:
				escaped = false
			case quoted && c == '\\':
				escaped = true
			case quoted && c == '"':
				quoted = false
				n.at = append(n.at, offset)
			case quoted || c == ' ' || c == '\n' || c == '\r' || c == '\t':
			case c == '[' && !begun:
				begun, due = true, true
				n.at = append(n.at, offset)
			case c == '"' && due && !ended && len(n.at) <= want:
				quoted, due = true, false
			case c == ',' && begun && !due && !ended:
				due = true
			case c == ']' && begun && !ended && (!due || len(n.at) == 1):
				ended = true
			default:
				return fmt.Errorf("found %q at byte %d, expected a list of %d names", c, offset, want)
			}
		}
		if _, err := r.Discard(len(block)); err != nil {
			return err
		}
	}
	if !ended {
		return fmt.Errorf("it is cut off, expected a list of %d names", want)
	}
	if got := len(n.at) - 1; got != want {
		return fmt.Errorf("it has %d names, expected %d", got, want)
	}
	return nil
}

func (n *names) bad(err error) error { return &Error{n.path, err.Error()} }

// reader reads names one after the other.
type nameReader struct {
	*names
	f *os.File
}

func (n *names) open() (*nameReader, error) {
	f, err := os.Open(n.path)
	if err != nil {
		return nil, err
	}
	return &nameReader{n, f}, nil
}

func (n *nameReader) close() { n.f.Close() }

// name reads one name.
func (n *nameReader) name(id int32) (string, error) {
	if id < 0 || int(id) >= len(n.at)-1 {
		return "", notFound("identifier %d: there are %d", id, len(n.at)-1)
	}
	raw := make([]byte, n.at[id+1]-n.at[id])
	if _, err := n.f.ReadAt(raw, n.at[id]); err != nil && err != io.EOF {
		return "", n.bad(err)
	}
	var name string
	if err := json.Unmarshal(bytes.TrimLeft(raw, ", \n\r\t"), &name); err != nil {
		return "", n.bad(err)
	}
	return name, nil
}
