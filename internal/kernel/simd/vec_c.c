#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("no-math-errno") // lets a loop of sqrtf become vectors
#endif
#include "vec.h"
#include <stddef.h>

#include "isa_c.h"
#define DL_VEC_PORTABLE

DL_INLINE void transpose_(vf r[VL]) {
	vf t[VL];
	for (int i = 0; i < VL; i++)
		for (int j = 0; j < VL; j++) t[i][j] = r[j][i];
	for (int i = 0; i < VL; i++) r[i] = t[i];
}

#include "vec_all.h"
