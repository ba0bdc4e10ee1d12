// Attention of bf16 with dot products of bf16 pairs. What it rounds to bf16 is
// what tiles do (vec_attn_tile.c): rotated q and k, the probabilities and their
// gradients; sums are float.
#if defined(__x86_64__)
#include "vec.h"
#include <stddef.h>

#define DL_WITH_BF16
#include "isa_avx512.h"
#include "transpose_avx.h"

#define DL_PAIR 1
#include "vec_access.h"
#include "vec_b16.h"
#include "vec_attn_body.h"
#include "isa_end.h"
#endif
