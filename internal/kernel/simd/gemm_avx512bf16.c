#if defined(__x86_64__)
#include "gemm.h"
#include "gemm_isa.h"

#define DL_WITH_BF16
#include "isa_avx512.h"

#include "transpose_avx.h"

#define MR 14
#define NV 2
#define DL_PAIR 1
#define DL_MADD(a, b, c) _mm512_dpbf16_ps(c, (__m512bh)(a), (__m512bh)(b))
#define DL_HALF_MADD(a, b, c) _mm256_dpbf16_ps(c, (__m256bh)(a), (__m256bh)(b))
#include "probe_body.h"

#include "gemm_body.h"

#include "isa_end.h"
#endif
