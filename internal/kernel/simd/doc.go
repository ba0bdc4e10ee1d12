// Package simd is the fast kernel.Backend: C with vector intrinsics, called
// through cgo and chosen at run time by what the processor has. Without cgo
// the package is empty and kernel/pick falls back to kernel/ref.
//
// # Levels
//
// One binary holds every variant: c (portable C, the only one off amd64),
// avx2 (AVX2, FMA, F16C), avx512 (F, BW, DQ, VL; and its bf16 dot products
// where they are fast) and amx (tiles for bf16 products, AVX-512 for
// everything else). Several levels can be open in one process.
//
// # How a C kernel is built
//
// cgo compiles every .c file of this folder with the same flags, so a variant
// takes its instructions from a header, never from a flag:
//
//	vec_entry.h      entry points: void dl_vec_norm(dl_pool *, int level, ...)
//	vec.c            the switch over levels (DL_DISPATCH in isa.h)
//	vec_norm_body.h  the code, written once with the vf vector macros of isa.h
//	vec_all.h        all such bodies; those on activations for float, then bf16
//	vec_access.h     names and accesses that bodies share
//	vec_c.c          #include "isa_c.h"       then #include "vec_all.h"
//	vec_avx2.c       #include "isa_avx2.h"    then the bodies, then "isa_end.h"
//	vec_avx512.c     #include "isa_avx512.h"  then the bodies, then "isa_end.h"
//	vec_avx512bf16.c those on bf16 once more, for processors with AVX512_BF16
//
// System headers and pool.h come before the isa header, because everything
// after it is compiled for that instruction set. Files for x86 are wrapped in
// #if defined(__x86_64__). DL_NAME(f) appends the variant's suffix to f. Bodies
// are named .h because go build only watches names it knows.
//
// # How a product is built
//
// Products differ from the other kernels in that a level has an engine for
// each type (gemm.h): floats, bf16 dot products or tiles.
//
//	gemm.go          packs a weight where that pays, then one call of C
//	gemm.c           blocks of the sum, chunks, threads; weights packed on the way
//	gemm_isa.h       what an instruction set brings: packing and the register tile
//	gemm_body.h      these, written once; gemm_c.c, gemm_avx2.c and so on include it
//	gemm_tile.c      y = x·B on AMX tiles; gemm_tile_dw.c gradients of weights
//
// # Rules for C kernels
//
//   - Pointers to Go memory are plain arguments of the entry point (cgo keeps
//     them alive and in place); never store them in a struct that Go holds.
//   - a*b+c is two roundings everywhere (-std=c11 in GCC, a pragma of isa.h in
//     Clang); a fused one is asked for by name (vfma).
//   - Nobody touches MXCSR: denormals, rounding and exceptions stay as Go has them.
//     (Instructions of AVX512_BF16 take and give 0 for denormals all the same.)
//   - A result may depend on the sizes and on the number of threads, never on
//     which thread ran which chunk: chunks write disjoint memory, and partial
//     sums are added in the order of their chunk numbers.
//   - No byte is read or written beyond an operand's end; lanes that a mask
//     leaves out do not count.
//
// # Tests that take more than go test
//
//	make test-amx   the kernels for tiles with tiles in software, on a processor
//	                with AVX-512 and bf16 (amx_emulate.h); every tail
//	make asan       all of it under the sanitizers for addresses and undefined
//	                behaviour; scratch beyond what was asked for is forbidden too
//	make tsan       the pool of threads under the thread sanitizer
package simd
