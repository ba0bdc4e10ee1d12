// What one instruction set brings to gemm.c: the sizes of its register tile
// and the loops that touch elements.
#ifndef DL_GEMM_ISA_H
#define DL_GEMM_ISA_H

#include <stddef.h>
#include <stdint.h>

// One side of a product whose elements are broadcast: packed element d of row
// i is the four bytes at p + i*row + d*step. With odd the last pair has only
// its first half; the two bytes after it are not read.
typedef struct {
	const char *p;
	size_t row, step;
	int odd;
} dl_gemm_left;

// Where a tile's sums go: y (+)= sums, of a type and ld elements a row. With
// part, the sums of earlier blocks of the depth, part_ld apart, are added first.
typedef struct {
	void *y;
	size_t ld;
	int type, add;
	const float *part;
	size_t part_ld;
} dl_gemm_out;

typedef struct {
	int mr, nr; // rows and columns of a register tile
	int pair;   // a packed element is two bf16 along the depth, not a float

	// rows transposes a panel of weights w[h][depth] (rows ld elements apart)
	// into dst[depth or pairs][nr], padded with zeros.
	void (*rows)(uint32_t *dst, const float *w, size_t ld, int h, int depth);
	// cols copies src[depth][w] into dst[depth or pairs][stride], padded with
	// zeros, and asks for the rows that follow. When stride is not a multiple
	// of the vector it may write up to 64 bytes past the end.
	void (*cols)(uint32_t *dst, int stride, const void *src, size_t ld, int type, int w, int depth);
	// copy copies rows src[h][depth] as packed elements, row i to dst + i*stride
	// bytes. The end of a row may be followed by zeros, up to 64 bytes of them.
	void (*copy)(char *dst, size_t stride, const void *src, size_t ld, int type, int h, int depth);
	// tile computes out[h][w] from Σ_d a[h][d]·b[d][nr], h <= mr, w <= nr. d
	// counts packed elements.
	void (*tile)(int h, int w, int depth, const dl_gemm_left *a, const uint32_t *b, const dl_gemm_out *out);
	// probe does n rounds of the multiply-adds of tile on operands at hand, and
	// returns how many floating-point operations that was.
	double (*probe)(int n);
} dl_gemm_isa;

// dl_gemm_isa_of is what a level and an engine use; NULL for tiles.
const dl_gemm_isa *dl_gemm_isa_of(int level, int engine);

extern const dl_gemm_isa dl_gemm_isa_c, dl_gemm_isa_avx2, dl_gemm_isa_avx512, dl_gemm_isa_avx512bf16;

#endif
