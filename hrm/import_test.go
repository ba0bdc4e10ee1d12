package hrm

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"deeploop/internal/cli"
	"deeploop/internal/goldentest"
	"deeploop/internal/kernel"
	"deeploop/internal/kernel/ref"
	"deeploop/internal/safetensors"
	"deeploop/internal/tensorfile"
	"deeploop/internal/torchfile"
)

// stateDict writes a golden case's first weights as torch.save would have. edit
// changes what is written.
func stateDict(t *testing.T, f *safetensors.File, prefix string, edit func(name string, shape []int) (string, []int)) string {
	t.Helper()
	var entries []torchfile.Entry
	var from []string
	for _, n := range f.Names() {
		short, ok := strings.CutPrefix(n, "init.model.inner.")
		if !ok {
			continue
		}
		shape := f.Tensors[n].Shape
		if edit != nil {
			if short, shape = edit(short, shape); short == "" {
				continue
			}
		}
		entries = append(entries, torchfile.Entry{Name: prefix + short, DType: "F32", Shape: shape})
		from = append(from, n)
	}
	path := filepath.Join(t.TempDir(), "step_7")
	var b bytes.Buffer
	require.NoError(t, torchfile.Write(&b, "", entries, func(i int, w io.Writer) error {
		r, _, err := f.Reader(from[i])
		require.NoError(t, err)
		n := int64(4)
		for _, d := range entries[i].Shape {
			n *= int64(d)
		}
		_, err = io.CopyN(w, r, n)
		return err
	}))
	require.NoError(t, os.WriteFile(path, b.Bytes(), 0o644))
	return path
}

func openForeign(t *testing.T, path string) (*Foreign, error) {
	t.Helper()
	f, err := tensorfile.Open(path)
	require.NoError(t, err)
	t.Cleanup(func() { f.Close() })
	return OpenForeign(f)
}

// The reference's weights, read from its kind of file, give its numbers.
func TestImportGivesTheReferencesNumbers(t *testing.T) {
	for _, path := range goldentest.Cases(t, "testdata", "hrm_*.json") {
		t.Run(goldentest.Name(path), func(t *testing.T) {
			var g goldenCase
			f := goldentest.Open(t, path, &g)
			c := g.config().Arch
			r, err := openForeign(t, stateDict(t, f, CompiledPrefix, nil))
			require.NoError(t, err)
			require.Equal(t, CompiledPrefix, r.Prefix)

			base := PresetHRMv1().Arch
			got, err := r.Deduce(base)
			require.NoError(t, err)
			require.Equal(t, []any{c.HiddenSize, c.HLayers, c.LLayers, c.PuzzleEmbDim, c.PosEncodings, c.VocabSize, c.MLPWidth()},
				[]any{got.HiddenSize, got.HLayers, got.LLayers, got.PuzzleEmbDim, got.PosEncodings, got.VocabSize, got.MLPWidth()})
			if c.PuzzleEmbDim > 0 {
				require.Equal(t, c.NumPuzzleIdentifiers, r.Identifiers())
			}
			m, err := r.Model(c, false)
			require.NoError(t, err)
			s, err := NewSegment(m, ref.New(2), g.Arch.Batch)
			require.NoError(t, err)
			defer s.Close()
			m.Config.HaltMaxSteps = 1 // the first segment alone
			_, err = NewEvaluator(s).Run(t.Context(), goldenRows(t, f, "step1.batch."), nil)
			require.NoError(t, err)
			want, err := f.Float32s("step1.logits")
			require.NoError(t, err)
			logits, vocab := s.Logits(), c.VocabSize
			near(t, "logits", want, func(i int) float64 { return logits.At(positions(c, i/vocab)*vocab + i%vocab) }, 5e-5, 0)
			q, err := f.Float32s("step1.q_halt_logits")
			require.NoError(t, err)
			near(t, "q_halt", q, func(i int) float64 { return s.Q.QHalt[i] }, 5e-5, 0)
		})
	}
}

// What is written is read back exactly, in both kinds of file and with any
// prefix; states in bf16 are rounded and nothing else is.
func TestExportReadsBack(t *testing.T) {
	c := tiny().Arch
	m, err := NewModel(c, kernel.Float32, 3)
	require.NoError(t, err)
	for i := range m.PuzzleTable.Len() {
		m.PuzzleTable.SetAt(i, float64(i)/7)
	}
	for _, e := range []Export{
		{FormatReference, CompiledPrefix, kernel.BFloat16}, {FormatReference, "", kernel.Float32}, {FormatSafetensors, PlainPrefix, kernel.Float32},
	} {
		path := filepath.Join(t.TempDir(), "file")
		var b bytes.Buffer
		rounded, err := m.Export(&b, e)
		require.NoError(t, err)
		require.Equal(t, e.States == kernel.BFloat16, rounded > 0)
		require.NoError(t, os.WriteFile(path, b.Bytes(), 0o644))
		r, err := openForeign(t, path)
		require.NoError(t, err)
		require.Equal(t, e.Prefix, r.Prefix)
		got, err := r.Model(c, false)
		require.NoError(t, err)
		want := m.foreignTensors("")
		for i, g := range got.foreignTensors("") {
			if rounded > 0 && i < 2 {
				for k := range g.Data.Len() {
					require.InDelta(t, want[i].Data.At(k), g.Data.At(k), rounded)
				}
				continue
			}
			require.Equal(t, want[i].Data.Bytes(), g.Data.Bytes(), g.Name)
		}
	}
}

func TestImportNamesWhatDoesNotFit(t *testing.T) {
	var g goldenCase
	f := goldentest.Open(t, "testdata/hrm_s1.json", &g)
	c := g.config().Arch
	r, err := openForeign(t, stateDict(t, f, PlainPrefix, func(name string, shape []int) (string, []int) {
		switch name {
		case "q_head.bias":
			return "", nil
		case "lm_head.weight":
			return name, []int{shape[0] - 1, shape[1]}
		case "L_level.layers.0.self_attn.o_proj.weight":
			return "L_level.layers.0.self_attn.o_proj.bias", shape
		case "L_init":
			return "rotary_emb.cos_cached", shape
		}
		return name, shape
	}))
	require.NoError(t, err)
	require.Equal(t, []string{"model.inner.rotary_emb.cos_cached"}, r.Ignored)
	_, err = r.Model(c, false)
	require.Equal(t, cli.ExitUsage, cli.ExitCode(err), err)
	for _, part := range []string{
		"model.inner.q_head.bias [2] is missing", "model.inner.lm_head.weight is [11 64], expected [12 64]", "model.inner.L_init [64] is missing",
		"o_proj.weight [64 64] is missing", "o_proj.bias [64 64] is not in this model",
	} {
		require.ErrorContains(t, err, part)
	}
}

// T16, T17: another table is only taken where that is asked for.
func TestImportOfAnotherTable(t *testing.T) {
	var g goldenCase
	f := goldentest.Open(t, "testdata/hrm_s1.json", &g)
	c := g.config().Arch
	r, err := openForeign(t, stateDict(t, f, CompiledPrefix, nil))
	require.NoError(t, err)
	c.NumPuzzleIdentifiers = 9
	_, err = r.Model(c, false)
	require.ErrorContains(t, err, "puzzle_emb.weights is [7 64], expected [9 64]")
	m, err := r.Model(c, true)
	require.NoError(t, err)
	table, err := f.Float32s("init.model.inner.puzzle_emb.weights")
	require.NoError(t, err)
	for col := range 64 {
		mean := 0.0
		for row := range 7 {
			mean += float64(table[row*64+col]) / 7
		}
		for row := range 9 {
			require.InDelta(t, mean, m.PuzzleTable.At(row*64+col), 1e-6)
		}
	}
	// Of the same size it stays as it is.
	c.NumPuzzleIdentifiers = 7
	m, err = r.Model(c, true)
	require.NoError(t, err)
	require.Equal(t, table, m.PuzzleTable.Float32s())
}

// TRM's state dict is told from HRM's by its one network, shows whether that
// has attention, and comes back as it was.
func TestImportOfTRM(t *testing.T) {
	for _, variant := range []string{"trm deep", "trm mlp_t"} {
		c := tiny().Arch
		variants()[variant](&c)
		m, err := NewModel(c, kernel.Float32, 3)
		require.NoError(t, err)
		var b bytes.Buffer
		_, err = m.Export(&b, Export{FormatReference, CompiledPrefix, kernel.Float32})
		require.NoError(t, err)
		path := filepath.Join(t.TempDir(), "step_7")
		require.NoError(t, os.WriteFile(path, b.Bytes(), 0o644))
		r, err := openForeign(t, path)
		require.NoError(t, err)
		require.True(t, r.TRM())
		got, err := r.Deduce(r.Preset().Arch)
		require.NoError(t, err)
		require.Equal(t, []any{NameTRM, c.MLPT, c.HiddenSize, 0, c.LLayers, c.PuzzleEmbDim, c.PosEncodings, c.VocabSize, c.MLPWidth(), trmSlots, true},
			[]any{got.Name, got.MLPT, got.HiddenSize, got.HLayers, got.LLayers, got.PuzzleEmbDim, got.PosEncodings, got.VocabSize, got.MLPWidth(), got.PuzzleEmbSlots, got.NoACTContinue})
		back, err := r.Model(c, false)
		require.NoError(t, err)
		for i, want := range m.foreignTensors("") {
			require.Equal(t, want.Data.Bytes(), back.foreignTensors("")[i].Data.Bytes(), want.Name)
		}
	}
	// HRM's are not TRM's.
	f := goldentest.Open(t, "testdata/hrm_s1.json", new(goldenCase))
	r, err := openForeign(t, stateDict(t, f, PlainPrefix, nil))
	require.NoError(t, err)
	require.False(t, r.TRM())
	require.Equal(t, NameHRM, r.Preset().Arch.Name)
}

func TestImportTellsOtherFiles(t *testing.T) {
	write := func(names ...string) string {
		path := filepath.Join(t.TempDir(), "weights.safetensors")
		var entries []safetensors.Entry
		for _, n := range names {
			entries = append(entries, safetensors.Entry{Name: n, DType: "F32", Shape: []int{1, 1}})
		}
		var b bytes.Buffer
		w, err := safetensors.NewWriter(&b, nil, entries)
		require.NoError(t, err)
		for range names {
			require.NoError(t, w.Put(make([]float32, 1)))
		}
		require.NoError(t, os.WriteFile(path, b.Bytes(), 0o644))
		return path
	}
	for names, parts := range map[string][]string{
		"puzzle_identifiers preds":              {"holds predictions", "hrm score --predictions"},
		"embed.weight blocks.0.attn.qkv.weight": {"a language model", "lm import"},
		"embed_tokens.embedding_weight H_init":  {"part of a checkpoint of this program", "hrm export"},
		"a b c d e f":                           {"no checkpoint of HRM", "a, b, c, d, e, ..."},
		"x.embed_tokens.embedding_weight x.L_level.layers.0.mlp.gate.weight": {"L_level.layers.0.mlp.down_proj.weight"},
	} {
		r, err := openForeign(t, write(strings.Fields(names)...))
		if err == nil {
			_, err = r.Deduce(PresetHRMv1().Arch)
		}
		require.Equal(t, cli.ExitUsage, cli.ExitCode(err), fmt.Sprint(names, err))
		for _, p := range parts {
			require.ErrorContains(t, err, p)
		}
	}
}
