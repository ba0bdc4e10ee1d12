package main

import (
	"encoding/binary"
	"fmt"
	"io"
	"os"
	"strconv"

	"deeploop/internal/files"
	"deeploop/internal/safetensors"
	"deeploop/lm"
)

// tensorFile recognises safetensors.
var tensorFile = files.Kind{Name: "safetensors file", Is: func(path string) bool {
	f, err := os.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	_, err = safetensors.ReadHeader(f, -1)
	return err == nil
}}

// dumpLogits writes the first batch of the split: tokens [B, T] and logits
// [B, T, V], at the first loop count. A split of less than a window gives one
// that is padded with zeros behind its end.
func (e *evaluation) dumpLogits(f *lm.Forward) error {
	clear(f.Tokens)
	n := min(int64(len(f.Tokens)), e.split.Len())
	if err := e.split.Read(f.Tokens[:n], 0); err != nil {
		return err
	}
	if err := f.Embed(); err != nil {
		return err
	}
	for range e.loops[0] {
		if err := f.Round(); err != nil {
			return err
		}
	}
	logits, err := f.Logits()
	if err != nil {
		return err
	}
	meta := map[string]string{
		"checkpoint": e.report.Checkpoint, "step": strconv.Itoa(e.report.Step), "weights": e.report.Weights,
		"precision": e.report.Precision, "kernel": e.report.Kernel, "loops": strconv.Itoa(e.loops[0]), "data": e.report.Data, "split": e.report.Split,
	}
	err = files.Write(e.o.dump, func(w io.Writer) error {
		out, err := safetensors.NewWriter(w, meta, []safetensors.Entry{
			{Name: "tokens", DType: "I32", Shape: []int{f.Batch, f.T}},
			{Name: "logits", DType: "F32", Shape: []int{f.Batch, f.T, f.Model.Config.VocabSize}},
		})
		if err != nil {
			return err
		}
		if err := binary.Write(out, binary.LittleEndian, f.Tokens); err != nil {
			return err
		}
		if _, err := out.Write(logits.Bytes()); err != nil {
			return err
		}
		return out.Finish()
	})
	if err != nil {
		return fmt.Errorf("write logits: %w", err)
	}
	e.s.Infof("wrote %s: logits of %d sequences of %d tokens at %d loops", e.o.dump, f.Batch, f.T, e.loops[0])
	return nil
}
