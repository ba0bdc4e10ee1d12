// What every variant shares: names and dispatch. See doc.go for the scheme.
#ifndef DL_ISA_H
#define DL_ISA_H

#include "cpu.h"
#include <math.h>
#include <stdint.h>
#include <string.h>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

// Said here, or AMX's header fails with a page of errors.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && __GNUC__ < 11
#error "the kernels need gcc 11 or newer, or clang; CGO_ENABLED=0 builds without them, in plain Go"
#endif

// a*b+c is never fused behind our back. GCC does so by -std=c11.
#if defined(__clang__)
#pragma STDC FP_CONTRACT OFF
#endif

#define DL_CAT_(a, b) a##b
#define DL_CAT(a, b) DL_CAT_(a, b)
// DL_NAME(f) is f with the suffix of the variant being compiled.
#define DL_NAME(f) DL_CAT(f, DL_SUFFIX)

#define DL_INLINE static inline __attribute__((always_inline, unused))

// DL_DISPATCH(level, f, args) calls the variant of f for a level; DL_AMX uses
// the AVX-512 one.
#if defined(__x86_64__)
#define DL_DISPATCH(level, f, args)                 \
	do {                                            \
		if ((level) >= DL_AVX512) f##_avx512 args;  \
		else if ((level) == DL_AVX2) f##_avx2 args; \
		else f##_c args;                            \
	} while (0)
#else
#define DL_DISPATCH(level, f, args) \
	do {                            \
		(void)(level);              \
		f##_c args;                 \
	} while (0)
#endif

// dl_bf16 conversions of one element: exact widening; rounding to nearest,
// ties to even, NaN stays NaN (as kernel.ToBF16).
DL_INLINE float dl_from_bf16(uint16_t h) {
	uint32_t u = (uint32_t)h << 16;
	float f;
	memcpy(&f, &u, 4);
	return f;
}

DL_INLINE uint16_t dl_to_bf16(float f) {
	uint32_t u;
	memcpy(&u, &f, 4);
	if (f != f) return (uint16_t)(u >> 16 | 0x40);
	return (uint16_t)((u + 0x7fff + (u >> 16 & 1)) >> 16);
}

#endif

// The vector macros that each isa_*.h defines, for float vectors vf of VL
// elements (VL is 8, 8 or 16):
//
//   vload(p) vstore(p, v)           unaligned
//   vload_n(p, n) vstore_n(p, v, n) only the first n elements, 0 <= n <= VL;
//                                   the others read as 0 and stay untouched
//   vloadh(p) vstoreh(p, v)         bf16 in memory, as dl_from/to_bf16
//   vloadh_n(p, n) vstoreh_n(p, v, n)
//   vset1(f) vzero()
//   vadd vsub vmul vdiv vmax vmin   (a, b)
//   vfma(a, b, c)                   a*b + c: one rounding, except in the
//                                   portable variant (two)
//   vsqrt(a)
//   vsum(a) vmaxall(a)              over the elements, in a fixed order
