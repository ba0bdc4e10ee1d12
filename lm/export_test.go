package lm

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"deeploop/deeploop"
	"deeploop/internal/goldentest"
	"deeploop/internal/kernel"
	"deeploop/internal/tensorfile"
)

// exportTo writes m and returns what reads it.
func exportTo(t *testing.T, m *Model, act kernel.DType) *tensorfile.File {
	t.Helper()
	path := filepath.Join(t.TempDir(), ExportTensors)
	f, err := os.Create(path)
	require.NoError(t, err)
	require.NoError(t, m.WriteTensors(f, act))
	require.NoError(t, f.Close())
	in, err := tensorfile.Open(path)
	require.NoError(t, err)
	t.Cleanup(func() { in.Close() })
	return in
}

func exported(m *Model) Exported {
	return Exported{Architecture: ExportArchitecture, Version: ExportVersion, Config: m.Config, Resolved: m.Resolved(), Tokenizer: "byte", Type: Float32Name}
}

// Every variant comes back: architecture and fp32 weights bit for bit.
func TestExportRoundTrip(t *testing.T) {
	eachVariant(t, func(t *testing.T, c TrainConfig) {
		m, err := NewModel(c.Arch.AtLoops(c.Arch.Loops), kernel.Float32, 3)
		require.NoError(t, err)
		shake(m, 4)
		raw, err := json.Marshal(exported(m))
		require.NoError(t, err)
		e, err := ReadExported(bytes.NewReader(raw), "config.json")
		require.NoError(t, err)
		require.Equal(t, exported(m), e)
		for _, act := range []kernel.DType{kernel.Float32, kernel.BFloat16} {
			back, err := Import(e, exportTo(t, m, act), "")
			require.NoError(t, err)
			require.Equal(t, m.Config, back.Config)
			require.Equal(t, m.Blocks.Residual, back.Blocks.Residual)
			for i, p := range m.Params() {
				got := back.Params()[i]
				if act == kernel.Float32 {
					require.Equal(t, p.Data.Float32s(), got.Data.Float32s(), p.Name)
					continue
				}
				for j := range p.Data.Len() {
					require.InEpsilon(t, p.Data.At(j), got.Data.At(j), 1./256, p.Name)
				}
				again := exportTo(t, back, act)
				once, err := Import(e, again, "")
				require.NoError(t, err)
				require.Equal(t, got.Data.Float32s(), once.Params()[i].Data.Float32s(), "what is rounded stays")
			}
		}
	})
}

func TestImportNamesWhatDoesNotFit(t *testing.T) {
	c := tiny()
	m, err := NewModel(c.Arch, kernel.Float32, 3)
	require.NoError(t, err)
	f := exportTo(t, m, kernel.Float32)

	e := exported(m)
	e.QKNorm, e.FinalNorm, e.MLPWidth = false, On, 10
	other, err := NewModel(e.Config, kernel.Float32, 1)
	require.NoError(t, err)
	e.Resolved = other.Resolved()
	_, err = Import(e, f, "")
	require.ErrorContains(t, err, "blocks.0.mlp.gate_up.weight is [24 8], expected [20 8]")
	require.ErrorContains(t, err, "final_norm.gain [8] is missing")
	require.ErrorContains(t, err, "blocks.1.attn.k_norm.gain [4] is not in this model")
	_, err = Import(exported(m), f, "init.")
	require.ErrorContains(t, err, "init.embed.weight [11 8] is missing")

	e = exported(m)
	e.P = .25
	_, err = Import(e, f, "")
	require.ErrorContains(t, err, "resolved.alpha is 2.8")
	e = exported(m)
	e.Layers = 200
	e.Resolved.NumParams = e.NumParams()
	_, err = Import(e, f, "")
	require.ErrorContains(t, err, "resolved.alpha")
	many, err := NewModel(e.Config, kernel.Float32, 1)
	require.NoError(t, err)
	e.Resolved = many.Resolved()
	_, err = Import(e, f, "")
	require.ErrorContains(t, err, "more")
	var bad *tensorfile.ImportError
	require.ErrorAs(t, err, &bad)
	require.True(t, bad.BadInput())
}

func TestReadExportedRefuses(t *testing.T) {
	m, err := NewModel(tiny().Arch, kernel.Float32, 3)
	require.NoError(t, err)
	raw, err := json.Marshal(exported(m))
	require.NoError(t, err)
	good := string(raw)
	for want, text := range map[string]string{
		`architecture is "llama"`:                          strings.Replace(good, ExportArchitecture, "llama", 1),
		"version is 2":                                     strings.Replace(good, `"version":1`, `"version":2`, 1),
		`unknown field "experts"`:                          strings.Replace(good, `"layers"`, `"experts":4,"layers"`, 1),
		"arch.num_heads is 3":                              strings.Replace(good, `"num_heads":2`, `"num_heads":3`, 1),
		"read config.json":                                 good[:40],
		"step is -1, expected":                             strings.Replace(good, `"step":0`, `"step":-1`, 1),
		"layers is a JSON string, expected a whole number": strings.Replace(good, `"layers":2`, `"layers":"2"`, 1),
		"p is a JSON bool, expected a number":              strings.Replace(good, `"p":0.5`, `"p":true`, 1),
		"a JSON array, expected an object":                 "[" + good + "]",
		`arch.placement is "sandwich"`:                     strings.Replace(good, `"placement":"deeploop"`, `"placement":"sandwich"`, 1),
	} {
		_, err := ReadExported(strings.NewReader(text), "config.json")
		require.ErrorContains(t, err, want)
	}
}

// Recorded weights, whose names have a prefix, are imported too.
func TestImportOfGoldenWeights(t *testing.T) {
	for _, path := range goldentest.Cases(t, "testdata", "lm_*.json") {
		var g goldenCase
		golden := goldentest.Open(t, path, &g)
		m, err := NewModel(g.config().Arch, kernel.Float32, 1)
		require.NoError(t, err)
		f, err := tensorfile.Open(strings.TrimSuffix(path, ".json") + ".safetensors")
		require.NoError(t, err)
		defer f.Close()
		got, err := Import(exported(m), f, "init.")
		require.NoError(t, err)
		want, err := golden.Float32s("init.embed.weight")
		require.NoError(t, err)
		require.Equal(t, want, got.Embed.Data.Float32s())
		require.Equal(t, deeploop.Placement(g.Placement), got.Blocks.Residual.Placement)
	}
}
