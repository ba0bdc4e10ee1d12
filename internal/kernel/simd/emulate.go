//go:build cgo && emulate_amx

package simd

/*
#cgo CFLAGS: -DDL_EMULATE_AMX
#include "amx_emulate.h"

// One product of whole tiles: c[16][16] += a[16][32 bf16]·b[16 pairs][16].
static void one_product(float *c, const void *a, const void *b) {
	struct {
		unsigned char palette, start_row, reserved[14];
		unsigned short bytes[16];
		unsigned char rows[16];
	} config = {1, 0, {0}, {64, 64, 64}, {16, 16, 16}};
	_tile_loadconfig(&config);
	_tile_loadd(0, c, 64);
	_tile_loadd(1, a, 64);
	_tile_loadd(2, b, 64);
	_tile_dpbf16ps(0, 1, 2);
	_tile_stored(0, c, 64);
	_tile_release();
}
*/
import "C"

import (
	"testing"
	"unsafe"

	"deeploop/internal/kernel"
)

// Tiles in software are far slower than AVX-512: they exist for tests.
func init() {
	if !testing.Testing() {
		panic("simd: built with -tags emulate_amx, which is for go test alone")
	}
}

// emulatedProduct adds a[16,32]·b to c[16,16], b in pairs as tiles have it.
func emulatedProduct(c *float32, a, b *kernel.BF16) {
	C.one_product((*C.float)(c), unsafe.Pointer(a), unsafe.Pointer(b))
}
