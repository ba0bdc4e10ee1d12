#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("no-math-errno") // lets a loop of sqrtf become vectors
#endif
#include "vec.h"
#include <stddef.h>

#include "isa_c.h"
#include "transpose_c.h"
#define DL_VEC_PORTABLE

#include "vec_all.h"
