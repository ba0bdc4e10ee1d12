package kerneltest

import (
	"unsafe"

	"deeploop/internal/kernel"
)

// view returns n elements of type t that begin at p.
func view(p unsafe.Pointer, t kernel.DType, n int) kernel.Buf {
	switch t {
	case kernel.Float32:
		return kernel.F32(unsafe.Slice((*float32)(p), n))
	case kernel.Float64:
		return kernel.F64(unsafe.Slice((*float64)(p), n))
	}
	return kernel.B16(unsafe.Slice((*kernel.BF16)(p), n))
}
