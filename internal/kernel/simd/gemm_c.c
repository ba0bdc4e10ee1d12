#include "isa_c.h"

#define MR 6
#define NV 1
#define DL_PAIR 0
#define DL_MADD(a, b, c) vfma(a, b, c)

DL_INLINE void transpose_(vf r[VL]) {
	vf t[VL];
	for (int i = 0; i < VL; i++)
		for (int j = 0; j < VL; j++) t[i][j] = r[j][i];
	for (int i = 0; i < VL; i++) r[i] = t[i];
}

#include "gemm_body.h"
