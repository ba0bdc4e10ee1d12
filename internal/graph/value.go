package graph

import (
	"reflect"
	"unsafe"

	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"deeploop/internal/kernel"
)

// dtypeBF16 is bfloat16 as a tensor type of our own; never tensor.Uint16,
// whose sums would add bit patterns (compute.md, rule 8).
var dtypeBF16 = tensor.Dtype{Type: reflect.TypeFor[kernel.BF16]()}

func tensorType(t kernel.DType) tensor.Dtype {
	switch t {
	case kernel.Float32:
		return tensor.Float32
	case kernel.Float64:
		return tensor.Float64
	}
	return dtypeBF16
}

// nowhere stands for the memory of every tensor.
var nowhere [64]byte

// dense makes the [rows, cols] tensor that stands for a value in Gorgonia.
// Nobody looks into it: the engine knows where the value is, which may change
// from run to run.
func dense(t kernel.DType, rows, cols int) *tensor.Dense {
	return tensor.New(tensor.WithShape(rows, cols), tensor.Of(tensorType(t)),
		tensor.FromMemory(uintptr(unsafe.Pointer(&nowhere)), uintptr(rows*cols*t.Size())))
}

func denseOf(n *Node) *tensor.Dense {
	rows, cols := Dims(n)
	return dense(TypeOf(n), rows, cols)
}

// scalar makes a Gorgonia scalar and a Buf of one element over its memory.
func scalar(t kernel.DType) (G.Value, kernel.Buf) {
	if t == kernel.Float64 {
		v := G.NewF64(0)
		return v, scalarBuf(v)
	}
	v := G.NewF32(0)
	return v, scalarBuf(v)
}

func scalarBuf(v G.Value) kernel.Buf {
	switch s := v.(type) {
	case *G.F32:
		return kernel.F32(unsafe.Slice((*float32)(s), 1))
	case *G.F64:
		return kernel.F64(unsafe.Slice((*float64)(s), 1))
	}
	panic("graph: scalar value is neither F32 nor F64")
}
