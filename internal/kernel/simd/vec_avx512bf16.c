// Kernels on bf16 with AVX512_BF16: two vectors are rounded by one instruction
// (which takes and gives 0 for denormals), and attention has dot products of
// bf16 pairs. What attention rounds to bf16 is what tiles do
// (vec_attn_tile.c): rotated q and k, the probabilities and their gradients;
// sums are float.
#if defined(__x86_64__)
#include "vec.h"
#include <stddef.h>

#define DL_WITH_BF16
#include "isa_avx512.h"
#include "transpose_avx.h"

#define DL_PAIR 1
#include "vec_access.h"
#include "vec_math.h"
#include "vec_b16.h"
#include "vec_norm_body.h"
#include "vec_qknorm_body.h"
#include "vec_swiglu_body.h"
#include "vec_activate_body.h"
#include "vec_move_body.h"
#include "vec_attn_body.h"
#include "isa_end.h"
#endif
