// Blocks of 32x32 bf16 brought into tile order, for gemm_tile*.c. A tile is 1
// KB: 16 rows of 16 pairs. On the right side of a product row r holds, for 16
// columns, the elements 2r and 2r+1 along the depth; on the left side it holds
// 32 elements along the depth of row r. One block is two tiles, columns (or
// rows) 0..15 and 16..31.
#include "gemm.h"
#include "transpose_avx.h"

DL_INLINE __mmask32 mask32(int n) { return n >= 32 ? 0xffffffffu : (1u << n) - 1; }

// row32 loads n elements, at most 32, as bf16; the others are 0.
DL_INLINE __m512i row32(const void *p, const int type, int n) {
	if (type == DL_B16) return _mm512_maskz_loadu_epi16(mask32(n), p);
	const float *f = p;
	__m512 lo = _mm512_maskz_loadu_ps((__mmask16)mask32(n), f);
	__m512 hi = _mm512_maskz_loadu_ps((__mmask16)(mask32(n) >> 16), f + 16);
	return (__m512i)_mm512_cvtne2ps_pbh(hi, lo);
}

// interleave_block: src[depth][width] to right-side order in t[2*16].
DL_INLINE void interleave_block(__m512i t[32], const void *src, size_t ld, const int type, int width, int depth) {
	const __m512i first = _mm512_set_epi16(47, 15, 46, 14, 45, 13, 44, 12, 43, 11, 42, 10, 41, 9, 40, 8, 39, 7, 38, 6, 37, 5,
	                                       36, 4, 35, 3, 34, 2, 33, 1, 32, 0);
	const __m512i second = _mm512_add_epi16(first, _mm512_set1_epi16(16));
	size_t es = type == DL_F32 ? 4 : 2;
	const char *p = src;
	for (int r = 0; r < 16; r++, p += 2 * ld * es) {
		__m512i a = 2 * r < depth ? row32(p, type, width) : _mm512_setzero_si512();
		__m512i b = 2 * r + 1 < depth ? row32(p + ld * es, type, width) : _mm512_setzero_si512();
		t[r] = _mm512_permutex2var_epi16(a, first, b);
		t[16 + r] = _mm512_permutex2var_epi16(a, second, b);
	}
}

DL_INLINE void transpose_tile(__m512i *dst, const __m512i *src) {
	vf r[16];
	for (int i = 0; i < 16; i++) r[i] = _mm512_castsi512_ps(src[i]);
	transpose_(r);
	for (int i = 0; i < 16; i++) dst[i] = _mm512_castps_si512(r[i]);
}

// right_from_rows: src[width][depth] to right-side order.
DL_INLINE void right_from_rows(__m512i *dst, const void *src, size_t ld, const int type, int width, int depth) {
	size_t es = type == DL_F32 ? 4 : 2;
	for (int h = 0; h < 2; h++, dst += 16) {
		__m512i t[16];
		for (int i = 0; i < 16; i++)
			t[i] = 16 * h + i < width ? row32((const char *)src + (16 * h + i) * ld * es, type, depth) : _mm512_setzero_si512();
		transpose_tile(dst, t);
	}
}

// right_from_cols: src[depth][width] to right-side order.
DL_INLINE void right_from_cols(__m512i *dst, const void *src, size_t ld, const int type, int width, int depth) {
	interleave_block(dst, src, ld, type, width, depth);
}

// left_from_cols: src[depth][width] to left-side order; width are the rows.
DL_INLINE void left_from_cols(__m512i *dst, const void *src, size_t ld, const int type, int width, int depth) {
	__m512i t[32];
	interleave_block(t, src, ld, type, width, depth);
	transpose_tile(dst, t);
	transpose_tile(dst + 16, t + 16);
}
