// What one instruction set brings to gemm.c: the sizes of its register tile
// and the loops that touch elements.
#ifndef DL_GEMM_ISA_H
#define DL_GEMM_ISA_H

#include <stddef.h>
#include <stdint.h>

typedef struct {
	int mr, nr; // rows and columns of a register tile
	int pair;   // a packed element is two bf16 along the depth, not a float

	// rows transposes src[h][depth] (rows ld elements apart) into
	// dst[depth or pairs][stride], padding h..stride with zeros. When stride is
	// not a multiple of the vector it may write up to 64 bytes past the end.
	void (*rows)(uint32_t *dst, int stride, const void *src, size_t ld, int type, int h, int depth);
	// cols copies src[depth][w] into dst[depth or pairs][stride] likewise.
	void (*cols)(uint32_t *dst, int stride, const void *src, size_t ld, int type, int w, int depth);
	// tile computes c[h][w] (+)= Σ_d a[d][h]·b[d][nr], h <= mr, w <= nr, with
	// a packed in rows of h. d counts packed elements.
	void (*tile)(int h, int w, int depth, const uint32_t *a, const uint32_t *b, float *c, size_t ldc, int add);
	// narrow rounds c[h][w] (+ y with add) to bf16 in y.
	void (*narrow)(uint16_t *y, size_t ldy, const float *c, size_t ldc, int h, int w, int add);
	// probe does n rounds of the multiply-adds of tile on operands at hand, and
	// returns how many floating-point operations that was.
	double (*probe)(int n);
} dl_gemm_isa;

// dl_gemm_isa_of is what a level and an engine use; NULL for tiles.
const dl_gemm_isa *dl_gemm_isa_of(int level, int engine);

extern const dl_gemm_isa dl_gemm_isa_c, dl_gemm_isa_avx2, dl_gemm_isa_avx512, dl_gemm_isa_avx512bf16;

#endif
