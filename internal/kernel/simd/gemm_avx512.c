#if defined(__x86_64__)
#include "gemm.h"
#include "gemm_isa.h"

#include "isa_avx512.h"

#include "transpose_avx.h"

#define MR 14
#define NV 2
#define DL_PAIR 0
#define DL_MADD(a, b, c) vfma(a, b, c)
#define DL_HALF_MADD(a, b, c) _mm256_fmadd_ps(a, b, c)
#include "probe_body.h"

#include "gemm_body.h"

#include "isa_end.h"
#endif
