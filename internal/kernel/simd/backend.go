//go:build cgo

package simd

/*
#cgo !asan CFLAGS: -O3
#cgo asan CFLAGS: -O1
#cgo CFLAGS: -std=c11 -D_GNU_SOURCE -Wall -Wextra -Wno-psabi
#cgo LDFLAGS: -lm -lpthread
#include "cpu.h"
#include "gemm.h"
#include "pool.h"
*/
import "C"

import (
	"fmt"

	"deeploop/internal/kernel"
)

// Level is a variant of the kernels, slowest first.
type Level int

// Levels. AMX means tiles for bf16 products and AVX-512 for the rest.
const (
	Portable Level = C.DL_C
	AVX2     Level = C.DL_AVX2
	AVX512   Level = C.DL_AVX512
	AMX      Level = C.DL_AMX
)

// vecAVX512 is the level of kernels that are no products without AVX512_BF16.
const vecAVX512 = C.DL_AVX512

// Levels lists all levels, slowest first.
var Levels = []Level{Portable, AVX2, AVX512, AMX}

func (l Level) String() string {
	if l < Portable || l > AMX {
		return fmt.Sprintf("level %d", int(l))
	}
	return [...]string{"c", "avx2", "avx512", "amx"}[l]
}

// Missing says what keeps level l from running on this machine; it is empty
// when the level runs.
func Missing(l Level) string {
	if s := C.dl_cpu_missing(C.int(l)); s != nil {
		return C.GoString(s)
	}
	return ""
}

// HasBF16Dot reports whether the processor has bf16 dot products beside
// AVX-512. Products use them where they are faster than widening to fp32.
func HasBF16Dot() bool { return C.dl_cpu_bf16_dot() != 0 }

// Backend computes with the instructions of one Level on its own pool of
// threads; the caller's thread works too.
type Backend struct {
	level   Level
	threads int
	pool    *C.dl_pool
	bf16    C.int // engine for products of bf16 (tests set others)
	vec     C.int // level of the other kernels (tests set vecAVX512)

	// scratch holds the packed copy of a weight that was asked for once; see
	// Backend.pack.
	scratch   kernel.Buf
	inScratch *packed
}

var _ kernel.Backend = (*Backend)(nil)

// Open starts a Backend of level l on threads threads, at least 1. It fails
// when the machine lacks the level (see Missing) or refuses the threads.
func Open(l Level, threads int) (*Backend, error) {
	if why := Missing(l); why != "" {
		return nil, fmt.Errorf("open kernel %v: %s", l, why)
	}
	p := C.dl_pool_open(C.int(threads))
	if p == nil {
		return nil, fmt.Errorf("open kernel %v: the system refuses %d threads; ask for fewer", l, threads)
	}
	return &Backend{level: l, threads: threads, pool: p, bf16: C.dl_gemm_engine(C.int(l), C.DL_B16), vec: C.dl_cpu_vec_level(C.int(l))}, nil
}

// Name returns the level's name.
func (b *Backend) Name() string { return b.level.String() }

// Threads returns the number of threads, the caller's included.
func (b *Backend) Threads() int { return b.threads }

// Close ends the worker threads and frees their memory. The Backend may be
// closed again, and is of no other use afterwards.
func (b *Backend) Close() {
	C.dl_pool_close(b.pool)
	b.pool = nil
}
