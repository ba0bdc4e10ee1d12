// Package pick chooses the kernel and the precision that a program runs with.
package pick

import (
	"cmp"
	"fmt"
	"runtime"
	"slices"
	"strings"

	"deeploop/internal/kernel"
	"deeploop/internal/kernel/ref"
)

// Auto lets the machine decide.
const Auto = "auto"

// Kernels are the names a user may ask for, slowest first.
var Kernels = []string{"ref", "c", "avx2", "avx512", "amx"}

// Choice is an open backend with the precision to run it in.
type Choice struct {
	Backend   kernel.Backend
	Precision kernel.DType // of activations
	// Reason says in a line what was chosen and why.
	Reason string
}

// Error is a request that this machine or build cannot serve.
type Error struct{ msg string }

func (e *Error) Error() string { return e.msg }

// BadInput marks the error as the caller's, for exit code 2.
func (e *Error) BadInput() bool { return true }

func errorf(format string, args ...any) error { return &Error{fmt.Sprintf(format, args...)} }

// Available lists the kernels that run here, slowest first.
func Available() []string {
	names := []string{"ref"}
	for _, k := range Kernels[1:] {
		if missing(k) == "" {
			names = append(names, k)
		}
	}
	return names
}

// Request is what to open.
type Request struct {
	// Kernel is one of Kernels, or auto for the fastest that runs here.
	Kernel string
	// Precision is fp32, bf16, or auto: bf16 where the chosen kernel has tiles
	// or bf16 dot products, else fp32.
	Precision string
	// Threads 0 means every processor this process may use.
	Threads int
	// KernelFrom and PrecisionFrom say who named them, for the reason; "" is
	// "asked for".
	KernelFrom, PrecisionFrom string
}

// Open opens a kernel. It fails when the machine lacks what is asked for.
func Open(r Request) (Choice, error) {
	name, threads := r.Kernel, r.Threads
	why := cmp.Or(r.KernelFrom, "asked for")
	if name == Auto || name == "" {
		have := Available()
		name = have[len(have)-1]
		why = "the fastest here"
		if next := slices.Index(Kernels, name) + 1; next < len(Kernels) {
			why += "; no " + Kernels[next] + ": " + missing(Kernels[next])
		}
	}
	if !slices.Contains(Kernels, name) {
		return Choice{}, errorf("kernel is %q (%s), expected auto or one of %s", name, why, strings.Join(Kernels, ", "))
	}
	if m := missing(name); m != "" {
		return Choice{}, errorf("kernel %s (%s) does not run here: %s; available: %s; --kernel auto takes the fastest", name, why, m, strings.Join(Available(), ", "))
	}
	act, pwhy, err := choosePrecision(name, r)
	if err != nil {
		return Choice{}, err
	}
	switch {
	case threads < 0 || threads > kernel.MaxThreads:
		return Choice{}, errorf("threads is %d, expected 1 to %d, or 0 for one per processor", threads, kernel.MaxThreads)
	case threads == 0:
		threads = runtime.GOMAXPROCS(0) // affinity and container limits are in it
	}
	var b kernel.Backend
	if name == "ref" {
		b = ref.New(threads)
	} else if b, err = open(name, threads); err != nil {
		return Choice{}, err
	}
	unit := "threads"
	if threads == 1 {
		unit = "thread"
	}
	return Choice{b, act, fmt.Sprintf("kernel %s (%s), %v (%s), %d %s", name, why, act, pwhy, threads, unit)}, nil
}

func choosePrecision(name string, r Request) (kernel.DType, string, error) {
	from := cmp.Or(r.PrecisionFrom, "asked for")
	switch r.Precision {
	case "fp32":
		return kernel.Float32, from, nil
	case "bf16":
		return kernel.BFloat16, from, nil
	case Auto, "":
		if unit := bf16Unit(name); unit != "" {
			return kernel.BFloat16, "the processor has " + unit, nil
		}
		return kernel.Float32, "no bf16 products in this kernel", nil
	}
	return 0, "", errorf("precision is %q, expected fp32, bf16 or auto", r.Precision)
}
