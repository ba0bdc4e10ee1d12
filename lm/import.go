package lm

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"reflect"
	"strings"

	"deeploop/internal/kernel"
	"deeploop/internal/optim"
	"deeploop/internal/tensorfile"
)

// ReadExported reads config.json of an exported model. Keys it does not know
// are errors: they would change the model.
func ReadExported(r io.Reader, name string) (Exported, error) {
	var e Exported
	d := json.NewDecoder(r)
	d.DisallowUnknownFields()
	if err := d.Decode(&e); err != nil {
		return e, tensorfile.ImportErrorf("read %s: %v", name, configProblem(err))
	}
	if e.Architecture != ExportArchitecture {
		return e, tensorfile.ImportErrorf("%s: architecture is %q, expected %q", name, e.Architecture, ExportArchitecture)
	}
	if e.Version != ExportVersion {
		return e, tensorfile.ImportErrorf("%s: version is %d, expected %d", name, e.Version, ExportVersion)
	}
	if e.Step < 0 {
		return e, tensorfile.ImportErrorf("%s: step is %d, expected at least 0", name, e.Step)
	}
	if err := e.Config.Validate(); err != nil {
		return e, fmt.Errorf("import %s: %w", name, err)
	}
	return e, nil
}

// configProblem says in JSON's words what has the wrong type.
func configProblem(err error) error {
	var kind *json.UnmarshalTypeError
	if !errors.As(err, &kind) {
		return err
	}
	if kind.Field == "" {
		return fmt.Errorf("a JSON %s, expected an object", kind.Value)
	}
	want := map[reflect.Kind]string{reflect.String: "a string", reflect.Bool: "true or false", reflect.Float64: "a number", reflect.Struct: "an object"}[kind.Type.Kind()]
	if want == "" {
		want = "a whole number"
	}
	return fmt.Errorf("%s is a JSON %s, expected %s", strings.TrimPrefix(kind.Field, "Config."), kind.Value, want)
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
			return tensorfile.ImportErrorf("resolved.%s is %v, the other keys give %v", c.key, c.file, c.gives)
		}
	}
	return nil
}

// Import builds the model of an exported one, in fp32 masters. prefix stands
// before the tensors' names; others are ignored when it is not empty. Tensors
// that are missing, left over, or of another shape or type are all named. A
// NaN or an infinity among the weights is an error.
func Import(e Exported, f *tensorfile.File, prefix string) (*Model, error) {
	if len(f.Names()) == 0 {
		return nil, tensorfile.ImportErrorf("%s has no tensors", f.Path)
	}
	m, err := newModel(e.Config, kernel.Float32, func(kernel.Buf, float64) {})
	if err != nil {
		return nil, err
	}
	if err := e.Resolved.agrees(m.Resolved()); err != nil {
		return nil, err
	}
	var wanted []tensorfile.Wanted
	for _, p := range m.Params() {
		wanted = append(wanted, tensorfile.Wanted{Name: prefix + p.Name, Shape: p.Shape(), Data: p.Data})
	}
	if err := f.Fits(wanted, func(name string) bool { return !strings.HasPrefix(name, prefix) }); err != nil {
		return nil, err
	}
	for i, p := range m.Params() {
		if err := f.Read(wanted[i]); err != nil {
			return nil, err
		}
		for j := range p.Data.Len() {
			if v := p.Data.At(j); math.IsNaN(v) || math.IsInf(v, 0) {
				return nil, tensorfile.ImportErrorf("%s: %v: the model is broken, take an earlier one", f.Path, &optim.NonFinite{What: "weight", Tensor: p.Name, Index: j, Value: v})
			}
		}
		p.Changed()
	}
	return m, nil
}
