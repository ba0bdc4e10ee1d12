#include "gemm.h"
#include "gemm_isa.h"

#include "isa_c.h"
#include "transpose_c.h"

#define MR 6
#define NV 1
#define DL_PAIR 0
#define DL_MADD(a, b, c) vfma(a, b, c)

static void tile(int h, int w, int depth, const dl_gemm_left *a, const uint32_t *b, const dl_gemm_out *out);

// probe multiplies in the nearest cache: no one instruction is known to be the
// limit.
static double probe(int n) {
	enum { COLS = NV * VL, TIMES = 4, DEPTH = 65536 / (2 * MR * COLS * TIMES) };
	static const uint32_t a[MR * DEPTH], b[COLS * DEPTH];
	float c[MR * COLS];
	dl_gemm_left left = {(const char *)a, DEPTH * 4, 4, 0};
	dl_gemm_out out = {c, COLS, DL_F32, 0, NULL, 0};
	for (int i = 0; i < n; i++)
		for (int t = 0; t < TIMES; t++) {
			tile(MR, COLS, DEPTH, &left, b, &out);
			__asm__ __volatile__("" ::"r"(c) : "memory"); // someone reads c
		}
	return 2.0 * MR * COLS * DEPTH * TIMES * n;
}

#include "gemm_body.h"
