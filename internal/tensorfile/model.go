package tensorfile

import (
	"fmt"
	"slices"
	"strings"

	"deeploop/internal/kernel"
)

// ImportError is a file that no model here can be made of.
type ImportError struct{ Problem string }

func (e *ImportError) Error() string { return "import: " + e.Problem }

// BadInput marks the error as the user's, for exit code 2.
func (e *ImportError) BadInput() bool { return true }

// ImportErrorf formats an ImportError.
func ImportErrorf(format string, args ...any) error {
	return &ImportError{fmt.Sprintf(format, args...)}
}

// Wanted is a tensor that a model needs, by its name in the file, and where its
// numbers go, in fp32.
type Wanted struct {
	Name  string
	Shape []int
	Data  kernel.Buf
}

// Fits compares the file's tensors with those of a model. Tensors that are
// missing, of another shape or no floating-point numbers, and those of the file
// that are left over and that ignored does not accept, are all named in an
// *ImportError.
func (f *File) Fits(wanted []Wanted, ignored func(name string) bool) error {
	var diff []string
	known := map[string]bool{}
	for _, w := range wanted {
		known[w.Name] = true
		have, ok := f.Info(w.Name)
		_, _, float := FloatType(have.DType)
		switch {
		case !ok:
			diff = append(diff, fmt.Sprintf("%s %v is missing", w.Name, w.Shape))
		case !slices.Equal(have.Shape, w.Shape):
			diff = append(diff, fmt.Sprintf("%s is %v, expected %v", w.Name, have.Shape, w.Shape))
		case !float:
			diff = append(diff, fmt.Sprintf("%s is %s, expected floating-point numbers", w.Name, have.DType))
		}
	}
	for _, name := range f.Names() {
		if in, _ := f.Info(name); !known[name] && !ignored(name) {
			diff = append(diff, fmt.Sprintf("%s %v is not in this model", name, in.Shape))
		}
	}
	if len(diff) == 0 {
		return nil
	}
	const most = 20
	if n := len(diff); n > most {
		diff = append(diff[:most], fmt.Sprintf("and %d more", n-most))
	}
	return ImportErrorf("the tensors of %s do not fit this model:\n  %s", f.Path, strings.Join(diff, "\n  "))
}

// Read reads the numbers of a tensor, which Fits has compared.
func (f *File) Read(w Wanted) error {
	dst := w.Data.Float32s()
	err := f.Floats(w.Name, func(part []float32) { dst = dst[copy(dst, part):] })
	if err != nil {
		return fmt.Errorf("import: %w", err)
	}
	return nil
}
