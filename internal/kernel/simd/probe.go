//go:build cgo

package simd

/*
#cgo noescape dl_probe_products
#cgo nocallback dl_probe_products
#cgo noescape dl_probe_copy
#cgo nocallback dl_probe_copy
#include "probe.h"
*/
import "C"

import "deeploop/internal/kernel"

var _ kernel.Limits = (*Backend)(nil)

// ProbeProducts implements kernel.Limits with the instruction that products of
// activations of type t use: tile products, bf16 dot products or fused
// multiply-adds. The portable level has no instruction to name; its products
// are compared with its own register tile. A round is about 65,536 operations
// of each thread.
func (b *Backend) ProbeProducts(t kernel.DType, n int) float64 {
	return float64(C.dl_probe_products(b.pool, C.int(b.level), b.engine(ctype(t)), C.int(n)))
}

// ProbeCopy implements kernel.Limits.
func (b *Backend) ProbeCopy(dst, src kernel.Buf) {
	d, s := dst.Float32s(), src.Float32s()
	if len(d) != len(s) {
		panic("kernel: ProbeCopy lengths do not fit")
	}
	C.dl_probe_copy(b.pool, (*C.float)(dst.Ptr()), (*C.float)(src.Ptr()), C.size_t(len(d)))
}
