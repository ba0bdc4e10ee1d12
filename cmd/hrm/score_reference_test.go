package main

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"deeploop/internal/goldentest"
	"deeploop/internal/kernel"
	"deeploop/internal/predictions"
	"deeploop/internal/torchfile"
	"deeploop/internal/torchtest"
)

// referencePredictions writes the rows of a predictions file as the reference
// does: one file of PyTorch for each of its processes, tokens as int32, labels
// -100 where they do not count, and logits in bf16 or preds.
func referencePredictions(t *testing.T, from, to string, logits bool, cuts ...int) {
	t.Helper()
	f, err := predictions.Open(from)
	require.NoError(t, err)
	read := func(open func() (*predictions.Tokens, error)) []uint8 {
		r, err := open()
		require.NoError(t, err)
		defer r.Close()
		b := make([]uint8, f.Rows*f.SeqLen)
		n, err := r.Read(b)
		require.NoError(t, err)
		require.Equal(t, f.Rows, n)
		return b
	}
	inputs, labels, preds := read(f.Inputs), read(f.Labels), read(f.Preds)
	lo := 0
	for part, hi := range append(cuts, f.Rows) {
		rows := hi - lo
		seq := f.SeqLen
		data := map[string]any{"puzzle_identifiers": f.Identifiers[lo:hi], "q_halt_logits": f.QHalt[lo:hi]}
		entries := []torchfile.Entry{{Name: "puzzle_identifiers", DType: "I32", Shape: []int{rows}}, {Name: "q_halt_logits", DType: "F32", Shape: []int{rows}}}
		wide := func(b []uint8, ignore bool) []int32 {
			out := make([]int32, rows*seq)
			for i, v := range b[lo*seq : hi*seq] {
				out[i] = int32(v)
				if ignore && v == 0 {
					out[i] = -100
				}
			}
			return out
		}
		data["inputs"], data["labels"], data["preds"] = wide(inputs, false), wide(labels, true), wide(preds, false)
		names := []string{"inputs", "labels", "preds"}
		if logits {
			const vocab = 12
			out := make([]kernel.BF16, rows*seq*vocab)
			for i, v := range preds[lo*seq : hi*seq] {
				for k := range vocab {
					out[i*vocab+k] = kernel.ToBF16(float32(-k) - 1)
				}
				out[i*vocab+int(v)] = kernel.ToBF16(0.5)
				if int(v) < vocab-1 {
					out[i*vocab+int(v)+1] = kernel.ToBF16(0.5) // as large, and later
				}
			}
			data["logits"], names = out, names[:2]
			entries = append(entries, torchfile.Entry{Name: "logits", DType: "BF16", Shape: []int{rows, seq, vocab}})
		}
		for _, n := range names {
			entries = append(entries, torchfile.Entry{Name: n, DType: "I32", Shape: []int{rows, seq}})
		}
		var b bytes.Buffer
		require.NoError(t, torchfile.Write(&b, "", entries, func(i int, w io.Writer) error {
			return binary.Write(w, binary.LittleEndian, data[entries[i].Name])
		}))
		require.NoError(t, os.WriteFile(fmt.Sprintf("%s.%d", to, part), b.Bytes(), 0o644))
		lo = hi
	}
}

// resave loads and saves files by PyTorch itself.
const resave = `
import sys, torch
for f in sys.argv[1:]:
    torch.save(torch.load(f, map_location="cpu"), f)
`

// The reference's predictions give the score that the same rows give from a
// file of ours, whoever wrote the PyTorch file and in however many parts.
func TestScoreOfTheReferencesPredictions(t *testing.T) {
	for _, path := range goldentest.Cases(t, "../../voting/testdata", "*_predictions*.safetensors*") {
		t.Run(filepath.Base(path), func(t *testing.T) {
			data := goldentest.Partner(path, "_predictions", "_identifiers", ".json")
			want := scored(t, "--predictions", path, "--data", data)
			dir := t.TempDir()
			to := filepath.Join(dir, "step_9_all_preds")
			check := func(name string) {
				t.Helper()
				got := scored(t, "--predictions", name, "--data", data)
				require.Equal(t, want.Ladder, got.Ladder)
				require.Equal(t, want.Predictions.Rows, got.Predictions.Rows)
				require.Equal(t, want.Predictions.PadRows, got.Predictions.PadRows)
			}
			referencePredictions(t, path, to, true)
			check(to + ".0")
			referencePredictions(t, path, to, false, 7, 60)
			for _, name := range []string{to + ".0", to + ".2", to, filepath.Join(dir, "step_9"), to + ".*", dir} {
				check(name)
			}
			require.NoError(t, os.Rename(to+".1", filepath.Join(dir, "aside")))
			refused(t, []string{"--predictions", to + ".0", "--data", data}, "part step_9_all_preds.1 is missing")
			refused(t, []string{"--predictions", to + ".0"}, "part step_9_all_preds.1 is missing")
			require.NoError(t, os.Rename(filepath.Join(dir, "aside"), to+".1"))
			refused(t, []string{"--predictions", to + ".0"}, "--data DIR")
			t.Run("PyTorch", func(t *testing.T) {
				torchtest.Run(t, resave, to+".0", to+".1", to+".2")
				check(to + ".0")
			})
		})
	}
}

func TestOtherFilesOfPyTorchAreNoPredictions(t *testing.T) {
	dir := t.TempDir()
	write := func(entries ...torchfile.Entry) string {
		path := filepath.Join(dir, "f")
		var b bytes.Buffer
		require.NoError(t, torchfile.Write(&b, "", entries, func(i int, w io.Writer) error {
			_, err := w.Write(make([]byte, 4*torchfile.Tensor{Shape: entries[i].Shape}.Len()))
			return err
		}))
		require.NoError(t, os.WriteFile(path, b.Bytes(), 0o644))
		return path
	}
	ids := torchfile.Entry{Name: "puzzle_identifiers", DType: "I32", Shape: []int{2}}
	q := torchfile.Entry{Name: "q_halt_logits", DType: "F32", Shape: []int{2}}
	preds := torchfile.Entry{Name: "preds", DType: "I32", Shape: []int{2, 4}}
	for parts, entries := range map[string][]torchfile.Entry{
		"no puzzle_identifiers|hrm import":        {{Name: "model.inner.H_init", DType: "F32", Shape: []int{2}}},
		"tensor q_halt_logits is []|for each row": {ids, preds},
		"tensor preds is [8]":                     {ids, q, {Name: "preds", DType: "I32", Shape: []int{8}}},
		"tensor inputs is [2 5]":                  {ids, q, preds, {Name: "inputs", DType: "I32", Shape: []int{2, 5}}},
		"expected whole numbers":                  {{Name: "puzzle_identifiers", DType: "F32", Shape: []int{2}}, q, preds},
		"no inputs and labels":                    {ids, q, preds},
	} {
		path := write(entries...)
		names := filepath.Join(dir, "identifiers.json")
		require.NoError(t, os.WriteFile(names, []byte(`["<blank>","a"]`), 0o644))
		refused(t, []string{"--predictions", path, "--data", names}, strings.Split(parts, "|")...)
	}
}
