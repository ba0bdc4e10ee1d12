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

static void tile(int h, int w, int depth, const uint32_t *a, const uint32_t *b, float *c, size_t ldc, int add);

// probe multiplies in the nearest cache: no one instruction is known to be the
// limit.
static double probe(int n) {
	enum { DEPTH = 65536 / (2 * MR * NV * VL * 4), TIMES = 4 };
	static const uint32_t a[MR * DEPTH], b[NV * VL * DEPTH];
	float c[MR * NV * VL];
	for (int i = 0; i < n; i++)
		for (int t = 0; t < TIMES; t++) {
			tile(MR, NV * VL, DEPTH, a, b, c, NV * VL, 0);
			__asm__ __volatile__("" ::"r"(c) : "memory"); // someone reads c
		}
	return 2.0 * MR * NV * VL * DEPTH * TIMES * n;
}

#include "gemm_body.h"
