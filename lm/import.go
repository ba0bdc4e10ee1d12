package lm

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"deeploop/internal/kernel"
	"deeploop/internal/safetensors"
)

// ImportError is an exported model that cannot be read as one.
type ImportError struct{ Problem string }

func (e *ImportError) Error() string { return "import: " + e.Problem }

// BadInput marks the error as the user's, for exit code 2.
func (e *ImportError) BadInput() bool { return true }

func importErrorf(format string, args ...any) error {
	return &ImportError{fmt.Sprintf(format, args...)}
}

// ReadExported reads config.json of an exported model. Keys it does not know
// are errors: they would change the model.
func ReadExported(r io.Reader, name string) (Exported, error) {
	var e Exported
	d := json.NewDecoder(r)
	d.DisallowUnknownFields()
	if err := d.Decode(&e); err != nil {
		return e, importErrorf("read %s: %v", name, err)
	}
	if e.Architecture != ExportArchitecture {
		return e, importErrorf("%s: architecture is %q, expected %q", name, e.Architecture, ExportArchitecture)
	}
	if e.Version != ExportVersion {
		return e, importErrorf("%s: version is %d, expected %d", name, e.Version, ExportVersion)
	}
	if err := e.Config.Validate(); err != nil {
		return e, fmt.Errorf("import %s: %w", name, err)
	}
	return e, nil
}

// agrees compares what follows from the keys with what the file says.
func (r Resolved) agrees(with Resolved) error {
	near := func(a, b float64) bool { return math.Abs(a-b) <= 1e-6*math.Abs(b) }
	for _, c := range []struct {
		key         string
		file, gives any
		same        bool
	}{
		{"alpha", r.Alpha, with.Alpha, near(r.Alpha, with.Alpha)},
		{"beta", r.Beta, with.Beta, near(r.Beta, with.Beta)},
		{"mlp_width", r.MLPWidth, with.MLPWidth, r.MLPWidth == with.MLPWidth},
		{"head_dim", r.HeadDim, with.HeadDim, r.HeadDim == with.HeadDim},
		{"final_norm", r.FinalNorm, with.FinalNorm, r.FinalNorm == with.FinalNorm},
		{"num_params", r.NumParams, with.NumParams, r.NumParams == with.NumParams},
	} {
		if !c.same {
			return importErrorf("resolved.%s is %v, the other keys give %v", c.key, c.file, c.gives)
		}
	}
	return nil
}

// Import builds the model of an exported one, in fp32 masters. prefix stands
// before the tensors' names; others are ignored when it is not empty. Tensors
// that are missing, left over, or of another shape or type are all named.
func Import(e Exported, f *safetensors.File, prefix string) (*Model, error) {
	if len(f.Names()) == 0 {
		return nil, importErrorf("the file of weights has no tensors")
	}
	m, err := newModel(e.Config, kernel.Float32, func(kernel.Buf, float64) {})
	if err != nil {
		return nil, err
	}
	if err := e.Resolved.agrees(m.Resolved()); err != nil {
		return nil, err
	}
	if err := m.compare(f, prefix); err != nil {
		return nil, err
	}
	for _, p := range m.Params() {
		if err := readTensor(f, prefix+p.Name, p.Data.Float32s()); err != nil {
			return nil, fmt.Errorf("import: %w", err)
		}
		p.Changed()
	}
	return m, nil
}

// compare lists the differences between the file's tensors and the model's.
func (m *Model) compare(f *safetensors.File, prefix string) error {
	var diff []string
	known := map[string]bool{}
	for _, p := range m.Params() {
		name := prefix + p.Name
		known[name] = true
		have, ok := f.Tensors[name]
		switch {
		case !ok:
			diff = append(diff, fmt.Sprintf("%s %v is missing", name, p.Shape()))
		case !slices.Equal(have.Shape, p.Shape()):
			diff = append(diff, fmt.Sprintf("%s is %v, expected %v", name, have.Shape, p.Shape()))
		case have.DType != "F32" && have.DType != "BF16":
			diff = append(diff, fmt.Sprintf("%s is %s, expected F32 or BF16", name, have.DType))
		}
	}
	for _, name := range f.Names() {
		if strings.HasPrefix(name, prefix) && !known[name] {
			diff = append(diff, fmt.Sprintf("%s %v is not in this model", name, f.Tensors[name].Shape))
		}
	}
	if len(diff) == 0 {
		return nil
	}
	const most = 20
	if n := len(diff); n > most {
		diff = append(diff[:most], fmt.Sprintf("and %d more", n-most))
	}
	return importErrorf("the tensors do not fit this model:\n  %s", strings.Join(diff, "\n  "))
}

// readTensor reads F32, or BF16 exactly.
func readTensor(f *safetensors.File, name string, dst []float32) error {
	if f.Tensors[name].DType == "F32" {
		return f.ReadInto(name, dst)
	}
	half := make([]uint16, len(dst))
	if err := f.ReadInto(name, half); err != nil {
		return err
	}
	for i, h := range half {
		dst[i] = math.Float32frombits(uint32(h) << 16)
	}
	return nil
}
