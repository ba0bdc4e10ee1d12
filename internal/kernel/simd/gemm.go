//go:build cgo

package simd

/*
#cgo noescape dl_gemm
#cgo nocallback dl_gemm
#cgo noescape dl_gemm_unpacked
#cgo nocallback dl_gemm_unpacked
#cgo noescape dl_gemm_dw
#cgo nocallback dl_gemm_dw
#cgo noescape dl_gemm_pack
#cgo nocallback dl_gemm_pack
#include "gemm.h"
#include "gemm_tile.h"
*/
import "C"

import (
	"unsafe"

	"deeploop/internal/kernel"
)

const badFloat64 = "kernel: simd computes in fp32 and bf16; use ref for fp64"

const (
	engineFMA  = C.DL_FMA
	engineDot  = C.DL_DOT
	engineTile = C.DL_TILE
)

// packs is what a Backend keeps in Weight.Packed: copies of the matrix in the
// order in which products read it, one for each engine and direction that has
// been asked for. Buffers are reused from version to version.
//
// A copy saves time only where a version is used several times. So the first
// uses of a version pack what they multiply with on the way, in cache; the use
// that pays for a copy makes it, and from then on the weight keeps the memory
// and packs once per version. A step that uses a weight once in each direction
// keeps no copy.
//
// Tiles cannot pack on the way: their first copy goes to scratch that all
// weights share, where it stays until another takes it. Products of very many
// rows (scratchRows) go by way of that scratch too, and no weight keeps a copy
// for them: packing is a thousandth of their work, and with a whole copy threads
// share rows, as the kernels before and after do.
type packs struct {
	slots [3][2]packed // by engine and layout
}

type packed struct {
	buf     kernel.Buf     // absent: in scratch, if anywhere
	data    unsafe.Pointer // the matrix that was packed
	version uint64
	rows    int
	uses    int // of the version
}

// pack returns w packed for an engine and a layout, packing it when the copy
// is missing or stale; nil where a product of m rows should do without.
func (b *Backend) pack(w *kernel.Weight, engine, layout C.int, m int) unsafe.Pointer {
	ps, _ := w.Packed.(*packs)
	if ps == nil || w.PackedBy != kernel.Backend(b) {
		ps = new(packs)
		w.Packed, w.PackedBy = ps, b
	}
	s := &ps.slots[engine][layout]
	if s.uses > 0 && (s.version != w.Version || s.data != w.Data.Ptr() || s.rows != w.Rows) {
		s.uses = 0
	}
	s.uses++
	s.data, s.version, s.rows = w.Data.Ptr(), w.Version, w.Rows
	fresh, kept, tile := s.uses == 1, !s.buf.Absent(), engine == engineTile
	scratch := !kept && (tile && fresh || !tile && m >= scratchRows && w.Rows*w.Cols <= scratchMost)
	switch {
	case kept && !fresh:
		return s.buf.Ptr()
	case kept:
	case !fresh && b.inScratch == s && (tile || scratch):
		return b.scratch.Ptr()
	case !tile && !scratch && s.uses < packUses(m):
		return nil
	}
	n, k := C.int(w.Rows), C.int(w.Cols)
	size := int(C.dl_gemm_packed_bytes(C.int(b.level), engine, layout, n, k)) / 4
	to := s.buf
	if scratch {
		if b.scratch.Len() < size {
			b.scratch = kernel.Alloc(kernel.Float32, size)
		}
		to, b.inScratch = b.scratch, s
	} else if to.Len() != size {
		to = kernel.Alloc(kernel.Float32, size)
		s.buf = to
	}
	C.dl_gemm_pack(b.pool, C.int(b.level), engine, layout, to.Ptr(), (*C.float)(w.Data.Ptr()), n, k)
	return to.Ptr()
}

const (
	scratchRows = 2048    // rows from which a product packs into scratch
	scratchMost = 1 << 24 // elements of the largest weight that does
)

// packUses is how many products of m rows with one version pay for a copy that
// is kept: of time where there are few rows; where there are many, of memory
// too, so that evaluations keep copies and training steps do not.
func packUses(m int) int {
	const many = 512
	if m < many {
		return 2
	}
	return 16
}

// ctype maps an activation type to C's; Float64 is the caller's bug.
func ctype(t kernel.DType) C.int {
	switch t {
	case kernel.Float32:
		return C.DL_F32
	case kernel.BFloat16:
		return C.DL_B16
	}
	panic(badFloat64)
}

// engine chooses the kind of product for activations of C type t.
func (b *Backend) engine(t C.int) C.int {
	if t == C.DL_B16 {
		return b.bf16
	}
	return C.DL_FMA
}

// cbool is C's 1 or 0.
func cbool(v bool) C.int {
	if v {
		return 1
	}
	return 0
}

// Linear implements kernel.Backend. Sums are fp32. With bf16 activations the
// engines with bf16 products (amx, and avx512 where the processor's dot
// products are the faster way) round the weight to bf16; the others widen the
// activations.
func (b *Backend) Linear(y, x kernel.Buf, w *kernel.Weight) {
	m := kernel.CheckLinear(y, x, w)
	if m == 0 {
		return
	}
	xt, yt := ctype(x.Type()), ctype(y.Type())
	engine := b.engine(xt)
	b.product(y, yt, x, xt, w, engine, C.DL_FORWARD, m, w.Rows, w.Cols, 0)
}

// LinearDX implements kernel.Backend; precision as in Linear.
func (b *Backend) LinearDX(dx, dy kernel.Buf, w *kernel.Weight, accumulate bool) {
	m := kernel.CheckLinearDX(dx, dy, w)
	if m == 0 {
		return
	}
	t := ctype(dy.Type())
	engine := b.engine(t)
	b.product(dx, t, dy, t, w, engine, C.DL_BACKWARD, m, w.Cols, w.Rows, cbool(accumulate))
}

// product computes y[m,n] (+)= x[m,k] · B, B being w in a layout.
func (b *Backend) product(y kernel.Buf, yt C.int, x kernel.Buf, xt C.int, w *kernel.Weight, engine, layout C.int, m, n, k int, add C.int) {
	if packed := b.pack(w, engine, layout, m); packed != nil {
		C.dl_gemm(b.pool, C.int(b.level), engine, y.Ptr(), yt, x.Ptr(), xt, packed, C.int(m), C.int(n), C.int(k), add)
		return
	}
	b.onTheWay(y, yt, x, xt, w, engine, layout, m, n, k, add)
}

// onTheWay is product without a copy of w; not for tiles.
func (b *Backend) onTheWay(y kernel.Buf, yt C.int, x kernel.Buf, xt C.int, w *kernel.Weight, engine, layout C.int, m, n, k int, add C.int) {
	C.dl_gemm_unpacked(b.pool, C.int(b.level), engine, y.Ptr(), yt, x.Ptr(), xt,
		(*C.float)(w.Data.Ptr()), layout, C.int(m), C.int(n), C.int(k), add)
}

// LinearDW implements kernel.Backend. Sums are fp32, in blocks of rows whose
// bounds, and the order in which they are added, depend on the sizes alone.
func (b *Backend) LinearDW(dw, dy, x kernel.Buf, n, k int, accumulate bool) {
	m := kernel.CheckLinearDW(dw, dy, x, n, k)
	t := ctype(x.Type())
	if m == 0 {
		if !accumulate {
			clear(dw.Float32s())
		}
		return
	}
	engine := b.engine(t)
	C.dl_gemm_dw(b.pool, C.int(b.level), engine, (*C.float)(dw.Ptr()), dy.Ptr(), x.Ptr(), t,
		C.int(m), C.int(n), C.int(k), cbool(accumulate))
}
