package kerneltest

import (
	"unsafe"

	"deeploop/internal/kernel"
)

// view returns n elements of type t that begin at byte at of all.
func view(all kernel.Buf, t kernel.DType, at, n int) kernel.Buf {
	p := unsafe.Add(all.Ptr(), at)
	switch t {
	case kernel.Float32:
		return kernel.F32(unsafe.Slice((*float32)(p), n))
	case kernel.Float64:
		return kernel.F64(unsafe.Slice((*float64)(p), n))
	}
	return kernel.B16(unsafe.Slice((*kernel.BF16)(p), n))
}

// asInts returns n int32 that begin at byte at of all.
func asInts(all kernel.Buf, at, n int) []int32 {
	return unsafe.Slice((*int32)(unsafe.Add(all.Ptr(), at)), n)
}
