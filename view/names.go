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
	dec := json.NewDecoder(bufio.NewReaderSize(f, 1<<16))
	if _, err := dec.Token(); err != nil {
		return nil, n.bad(err)
	}
	n.at = append(n.at, dec.InputOffset())
	for dec.More() {
		tok, err := dec.Token()
		if err != nil {
			return nil, n.bad(err)
		}
		if _, ok := tok.(string); !ok || len(n.at) > d.NumIdentifiers() {
			return nil, n.bad(fmt.Errorf("expected a list of %d names", d.NumIdentifiers()))
		}
		n.at = append(n.at, dec.InputOffset())
	}
	if len(n.at)-1 != d.NumIdentifiers() {
		return nil, n.bad(fmt.Errorf("it has %d names, expected %d", len(n.at)-1, d.NumIdentifiers()))
	}
	return n, nil
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
