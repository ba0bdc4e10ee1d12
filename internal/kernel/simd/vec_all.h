// All vector kernels of one variant. Included after an isa header; the bodies
// of kernels on activations are compiled twice, for float and bf16, with the
// names that vec_f32.h and vec_b16.h define:
//
//   act                    the element type
//   ald(p) ast(p, v)       load and store a vector, widening and rounding
//   ald_n ast_n            the first n elements only
//   ast1(p, f)             store one element
//   alogistics(s, e, u, n) e^-u and 1/(1+e^-u) of n vectors, as exact as needed
//   astd(p, v, n)          store the first n of VD doubles
//   ACT(f)                 f with the suffixes of element type and variant
#include "vec_access.h"
#define DL_PAIR 0 // products of attention take floats

#include "vec_math.h"
#include "vec_update_body.h"
#include "vec_loss_body.h"

#include "vec_f32.h"
#include "vec_act_body.h"

#include "vec_b16.h"
#include "vec_act_body.h"
