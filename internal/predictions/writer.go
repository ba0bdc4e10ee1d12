package predictions

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/klauspost/compress/zstd"

	"deeploop/internal/files"
	"deeploop/internal/safetensors"
)

// Source gives the tokens of a row of the file, counted in the order of
// Append. The slices are only read before the next call; an error ends Close.
type Source func(row int) (inputs, labels []uint8, err error)

// Writer streams predictions to disk. Memory does not grow with the tokens:
// they are compressed into a temporary file at once; 12 bytes a row are kept.
// Nothing appears under the final name before Close has succeeded.
type Writer struct {
	path         string
	meta         Meta
	rows, seqLen int

	tmp *os.File // compressed preds
	enc *zstd.Encoder

	ids, tests []int32
	q          []float32
	err        error
	done       bool
}

// Create starts a predictions file of exactly rows rows of seqLen tokens,
// making its folder where needed. Call Abort when Close is not reached.
func Create(path string, meta Meta, rows, seqLen int) (*Writer, error) {
	if rows < 0 || seqLen <= 0 {
		panic("predictions: Create needs rows >= 0 and seqLen > 0")
	}
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("create predictions: %w", err)
	}
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
		dir = os.TempDir() // a pipe or device: its folder is no place for files
	}
	tmp, err := os.CreateTemp(dir, ".preds-*")
	if err != nil {
		return nil, fmt.Errorf("create predictions: %w", err)
	}
	// Where the system allows it the name goes at once, so that a killed
	// process leaves nothing behind.
	os.Remove(tmp.Name())
	enc, err := newEncoder(tmp)
	if err != nil {
		tmp.Close()
		return nil, err
	}
	return &Writer{
		path: path, meta: meta, rows: rows, seqLen: seqLen, tmp: tmp, enc: enc,
		ids: make([]int32, 0, rows), tests: make([]int32, 0, rows), q: make([]float32, 0, rows),
	}, nil
}

func newEncoder(w io.Writer) (*zstd.Encoder, error) {
	return zstd.NewWriter(w, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1), zstd.WithEncoderCRC(true))
}

// Append adds n rows: preds [n, seqLen] arg-max tokens, qHalt [n] halt logits,
// identifiers [n], and testIndex [n], which test input of its task each row
// is. Pad rows must be left out.
func (w *Writer) Append(preds []uint8, qHalt []float32, identifiers, testIndex []int32) error {
	n := len(identifiers)
	if len(preds) != n*w.seqLen || len(qHalt) != n || len(testIndex) != n {
		panic("predictions: Append slices disagree about the number of rows")
	}
	if w.done {
		panic("predictions: Append after Close or Abort")
	}
	if len(w.ids)+n > w.rows {
		panic("predictions: Append of more rows than announced")
	}
	if w.err != nil {
		return w.err
	}
	if _, err := w.enc.Write(preds); err != nil {
		w.err = fmt.Errorf("write predictions: %w", err)
		return w.err
	}
	w.ids = append(w.ids, identifiers...)
	w.tests = append(w.tests, testIndex...)
	w.q = append(w.q, qHalt...)
	return nil
}

// Abort drops everything. It does nothing after Close.
func (w *Writer) Abort() {
	if w.done {
		return
	}
	w.done = true
	w.enc.Close()
	w.tmp.Close()
	os.Remove(w.tmp.Name())
}

// Close puts the file together beside its final name, syncs it and renames it.
// src may be nil: the file then has no inputs and labels, and only a scorer
// that finds the dataset can read it. It fails when rows are missing; after a
// failure nothing is left.
func (w *Writer) Close(src Source) error {
	defer w.Abort()
	if w.err != nil {
		return w.err
	}
	if len(w.ids) != w.rows {
		return fmt.Errorf("finish predictions %s: %d rows were predicted, %d were announced", w.path, len(w.ids), w.rows)
	}
	if err := w.enc.Close(); err != nil {
		return fmt.Errorf("write predictions: %w", err)
	}
	if err := files.Write(w.path, func(out io.Writer) error { return w.assemble(out, src) }); err != nil {
		return fmt.Errorf("write predictions %s: %w", w.path, err)
	}
	return nil
}

// assemble writes the file as a row of zstd frames, which every decoder joins
// again: header and small tensors, the preds as they lie in the temporary
// file, inputs and labels.
func (w *Writer) assemble(out io.Writer, src Source) error {
	n, grid := []int{w.rows}, []int{w.rows, w.seqLen}
	entries := []safetensors.Entry{
		{Name: tIdentifiers, DType: "I32", Shape: n},
		{Name: tQHalt, DType: "F32", Shape: n},
		{Name: tTestIndex, DType: "I32", Shape: n},
		{Name: tPreds, DType: "U8", Shape: grid},
	}
	if src != nil {
		entries = append(entries,
			safetensors.Entry{Name: tInputs, DType: "U8", Shape: grid},
			safetensors.Entry{Name: tLabels, DType: "U8", Shape: grid})
	}
	var head bytes.Buffer
	if _, err := safetensors.NewWriter(&head, w.meta.encode(), entries); err != nil {
		return err
	}
	enc, err := newEncoder(out)
	if err != nil {
		return err
	}
	defer enc.Close()
	if _, err := enc.Write(head.Bytes()); err != nil {
		return err
	}
	for _, small := range []any{w.ids, w.q, w.tests} {
		if err := binary.Write(enc, binary.LittleEndian, small); err != nil {
			return err
		}
	}
	if err := enc.Close(); err != nil {
		return err
	}
	if _, err := w.tmp.Seek(0, io.SeekStart); err != nil {
		return err
	}
	if _, err := io.Copy(out, w.tmp); err != nil {
		return err
	}
	if src == nil {
		return nil
	}
	enc.Reset(out)
	for part := range 2 {
		for row := range w.rows {
			inputs, labels, err := src(row)
			if err != nil {
				return err
			}
			tokens := [2][]uint8{inputs, labels}[part]
			if len(tokens) != w.seqLen {
				panic("predictions: the source gave a row of the wrong length")
			}
			if _, err := enc.Write(tokens); err != nil {
				return err
			}
		}
	}
	return enc.Close()
}
