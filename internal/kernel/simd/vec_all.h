// All vector kernels of one variant. Included after an isa header; the bodies
// of kernels on activations are compiled twice, for float and bf16, with the
// names that vec_f32.h and vec_b16.h define:
//
//   act                    the element type
//   ald(p) ast(p, v)       load and store a vector, widening and rounding
//   ald_n ast_n            the first n elements only
//   ast1(p, f)             store one element
//   astd(p, v, n)          store the first n of VD doubles
//   ACT(f)                 f with the suffixes of element type and variant
#define ACT(f) DL_CAT(DL_CAT(f, ACT_LETTER), DL_SUFFIX)

// AK and SK are accesses to k elements of activations, 0 <= k <= VL.
#define AK(p, k) ((k) == VL ? ald(p) : ald_n(p, (int)(k)))
#define SK(p, v, k)                        \
	do {                                   \
		if ((k) == VL) ast(p, v);          \
		else ast_n(p, v, (int)(k));        \
	} while (0)

// ROW_LOOP runs the block that follows for each vector of a row of d elements:
// i is its first element, k how many of its elements count.
#define ROW_LOOP(d, i, k)                         \
	for (int64_t i = 0, k = VL; i < (d); i += VL) \
		if ((k = (d) - i < VL ? (d) - i : VL), 1)

#include "vec_math.h"
#include "vec_update_body.h"
#include "vec_loss_body.h"
#include "vec_mul_body.h"

#include "vec_f32.h"
#include "vec_act_body.h"

#include "vec_b16.h"
#include "vec_act_body.h"
