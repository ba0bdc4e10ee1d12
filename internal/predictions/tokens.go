package predictions

import (
	"errors"
	"fmt"
	"io"
)

// Tokens reads one [Rows, SeqLen] tensor from the first row to the last.
type Tokens struct {
	f    *File
	r    io.ReadCloser
	left int   // rows still to come
	tail int64 // bytes of the file behind this tensor; -1: of no interest
}

// Preds opens the arg-max tokens. The Read that reaches the last row also
// reads the rest of the file, so that damage behind the rows is noticed.
func (f *File) Preds() (*Tokens, error) {
	t, err := f.tokens(tPreds)
	if err == nil && f.header != nil {
		t.tail = f.size - f.header.DataAt - f.header.Tensors[tPreds].End
	}
	return t, err
}

// Inputs opens the input tokens; see HasTokens.
func (f *File) Inputs() (*Tokens, error) { return f.tokens(tInputs) }

// Labels opens the label tokens; see HasTokens.
func (f *File) Labels() (*Tokens, error) { return f.tokens(tLabels) }

func (f *File) tokens(name string) (*Tokens, error) {
	if f.header == nil {
		return &Tokens{f: f, r: f.partTokens(name), left: f.Rows, tail: -1}, nil
	}
	in, err := f.info(name, "U8", 2)
	if err != nil {
		return nil, f.fail(err)
	}
	r, err := f.at(in.Begin)
	if err != nil {
		return nil, f.fail(err)
	}
	return &Tokens{f: f, r: r, left: f.Rows, tail: -1}, nil
}

// Read fills dst with whole rows and returns how many; less than asked, or 0,
// is the end.
func (t *Tokens) Read(dst []uint8) (int, error) {
	n := min(len(dst)/t.f.SeqLen, t.left)
	if n == 0 {
		return 0, nil
	}
	if _, err := io.ReadFull(t.r, dst[:n*t.f.SeqLen]); err != nil {
		return 0, t.f.fail(err)
	}
	t.left -= n
	if t.left == 0 && t.tail >= 0 {
		if err := t.drain(); err != nil {
			return 0, t.f.fail(err)
		}
	}
	return n, nil
}

func (t *Tokens) drain() error {
	if _, err := io.CopyN(io.Discard, t.r, t.tail); err != nil {
		return err
	}
	var one [1]byte
	switch _, err := io.ReadFull(t.r, one[:]); {
	case errors.Is(err, io.EOF):
		return nil
	case err != nil:
		return err
	}
	return fmt.Errorf("there are bytes behind the last tensor, expected %d in all", t.f.size)
}

// Close closes the stream.
func (t *Tokens) Close() error { return t.r.Close() }
