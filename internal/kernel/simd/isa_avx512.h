// AVX-512 F, BW, DQ and VL. Everything after this header, up to isa_end.h, is
// compiled for it.
#include "isa.h"

// With DL_WITH_BF16 defined, bf16 dot products too.
#if defined(DL_WITH_BF16)
#define DL_SUFFIX _avx512bf16
#define DL_TARGET "avx2,fma,f16c,avx512f,avx512bw,avx512dq,avx512vl,avx512bf16"
#else
#define DL_SUFFIX _avx512
#define DL_TARGET "avx2,fma,f16c,avx512f,avx512bw,avx512dq,avx512vl"
#endif
#if defined(__clang__)
#pragma clang attribute push(__attribute__((target(DL_TARGET))), apply_to = function)
#elif defined(DL_WITH_BF16)
#pragma GCC push_options
#pragma GCC target("avx2,fma,f16c,avx512f,avx512bw,avx512dq,avx512vl,avx512bf16")
#else
#pragma GCC push_options
#pragma GCC target("avx2,fma,f16c,avx512f,avx512bw,avx512dq,avx512vl")
#endif

#include "isa_vf512.h"
