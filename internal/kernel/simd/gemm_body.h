// The element loops of a matrix product, for one instruction set. The file
// that includes this has included an isa_*.h and defined MR and NV, the
// register tile in rows and vectors, DL_PAIR and DL_MADD.
#include "gemm.h"
#include "gemm_isa.h"

enum { NR = NV * VL, PER = DL_PAIR ? 2 : 1 };

#if DL_PAIR
// Dot products take denormals for zeros, and so may the conversions around them.
DL_INLINE vf join_(vf lo, vf hi) { return (vf)_mm512_cvtne2ps_pbh(hi, lo); }
DL_INLINE __m512i mix_(__m512i a, __m512i b, int half) {
	const __m512i first = _mm512_set_epi16(47, 15, 46, 14, 45, 13, 44, 12, 43, 11, 42, 10, 41, 9, 40, 8, 39, 7, 38, 6, 37, 5,
	                                       36, 4, 35, 3, 34, 2, 33, 1, 32, 0);
	return _mm512_permutex2var_epi16(a, half ? _mm512_add_epi16(first, _mm512_set1_epi16(16)) : first, b);
}
DL_INLINE __m512i row32_(const void *p, const int type, int n) {
	if (n > 2 * VL) n = 2 * VL;
	if (type == DL_B16) return _mm512_maskz_loadu_epi16((__mmask32)((1ull << n) - 1), p);
	const float *f = p;
	return (__m512i)join_(vload_n(f, n < VL ? n : VL), n > VL ? vload_n(f + VL, n - VL) : vzero());
}
#endif

// lanes_ loads the VL packed elements of w that begin at element k of n.
DL_INLINE vf lanes_(const float *w, int k, int n) {
#if DL_PAIR
	return (vf)row32_(w + k, DL_F32, n - k);
#else
	return n - k >= VL ? vload(w + k) : vload_n(w + k, n - k);
#endif
}

static void rows(uint32_t *dst, const float *w, size_t ld, int h, int depth) {
	int packed = (depth + PER - 1) / PER;
	for (int d = 0; d < packed; d += VL) {
		int n = packed - d < VL ? packed - d : VL;
		for (int i0 = 0; i0 < NR; i0 += VL) {
			vf r[VL];
			for (int i = 0; i < VL; i++) r[i] = i0 + i < h ? lanes_(w + (i0 + i) * ld, d * PER, depth) : vzero();
			transpose_(r);
			for (int i = 0; i < n; i++) vstore((float *)dst + (size_t)(d + i) * NR + i0, r[i]);
		}
	}
}

DL_INLINE void cols_(uint32_t *dst, int stride, const void *src, size_t ld, const int type, int w, int depth) {
	enum { AHEAD = 16 }; // rows: as many as a call takes
	size_t es = type == DL_F32 ? 4 : 2;
	for (int d = 0; d < depth; d += PER) {
		const char *row = (const char *)src + d * ld * es;
		float *out = (float *)dst + (size_t)(d / PER) * stride;
		for (int p = 0; p < PER; p++)
			for (size_t c = 0; c < w * es; c += 64) __builtin_prefetch(row + (AHEAD + p) * ld * es + c);
		for (int c = 0; c < stride; c += PER * VL) {
			int n = w - c < 0 ? 0 : w - c;
#if DL_PAIR
			__m512i a = row32_(row + c * es, type, n);
			__m512i b = d + 1 < depth ? row32_(row + (ld + c) * es, type, n) : _mm512_setzero_si512();
			vstore(out + c, (vf)mix_(a, b, 0));
			if (c + VL < stride) vstore(out + c + VL, (vf)mix_(a, b, 1));
#else
			vf v;
			if (n > VL) n = VL;
			if (type == DL_F32)
				v = n == VL ? vload((const float *)row + c) : vload_n((const float *)row + c, n);
			else
				v = n == VL ? vloadh((const uint16_t *)row + c) : vloadh_n((const uint16_t *)row + c, n);
			vstore(out + c, v);
#endif
		}
	}
}

// narrow_ is cols_ for a stride of at most one vector: what depends on the
// width alone stays out of the loop.
DL_INLINE void narrow_(uint32_t *dst, int stride, const void *src, size_t ld, const int type, int w, int depth) {
	enum { AHEAD = 16 };
	size_t bytes = ld * (type == DL_F32 ? 4 : 2), last = (size_t)w * (type == DL_F32 ? 4 : 2) - 1;
	const char *row = src;
	float *out = (float *)dst;
#if DL_PAIR
	const __mmask32 half = (__mmask32)((1ull << w) - 1);
	const __mmask16 mask = (__mmask16)half;
	const __m512i none = _mm512_setzero_si512();
	for (int d = 0; d < depth; d += 2, row += 2 * bytes, out += stride) {
		int two = d + 1 < depth;
		const char *next = two ? row + bytes : row;
		__builtin_prefetch(row + AHEAD * bytes);
		__builtin_prefetch(row + AHEAD * bytes + last);
		__builtin_prefetch(next + AHEAD * bytes);
		__builtin_prefetch(next + AHEAD * bytes + last);
		__m512i a, b = none;
		if (type == DL_B16) {
			a = _mm512_maskz_loadu_epi16(half, row);
			if (two) b = _mm512_maskz_loadu_epi16(half, next);
		} else {
			a = (__m512i)join_(_mm512_maskz_loadu_ps(mask, row), vzero());
			if (two) b = (__m512i)join_(_mm512_maskz_loadu_ps(mask, next), vzero());
		}
		vstore(out, (vf)mix_(a, b, 0));
	}
#else
	for (int d = 0; d < depth; d++, row += bytes, out += stride) {
		__builtin_prefetch(row + AHEAD * bytes);
		__builtin_prefetch(row + AHEAD * bytes + last);
		if (type == DL_F32)
			vstore(out, w == VL ? vload((const float *)row) : vload_n((const float *)row, w));
		else
			vstore(out, w == VL ? vloadh((const uint16_t *)row) : vloadh_n((const uint16_t *)row, w));
	}
#endif
}

// The 64 bytes that cols may write past the end are, before the end, a row
// that is written next.
static void cols(uint32_t *dst, int stride, const void *src, size_t ld, int type, int w, int depth) {
	int narrow = stride <= VL;
	if (narrow && type == DL_F32)
		narrow_(dst, stride, src, ld, DL_F32, w, depth);
	else if (narrow)
		narrow_(dst, stride, src, ld, DL_B16, w, depth);
	else if (type == DL_F32)
		cols_(dst, stride, src, ld, DL_F32, w, depth);
	else
		cols_(dst, stride, src, ld, DL_B16, w, depth);
}

static void copy(char *dst, size_t stride, const void *src, size_t ld, int type, int h, int depth) {
	for (int i = 0; i < h; i++, dst += stride) {
		if (DL_PAIR || type == DL_F32) {
			size_t es = type == DL_F32 ? 4 : 2;
			memcpy(dst, (const char *)src + i * ld * es, (size_t)depth * es);
			if (DL_PAIR && depth % 2) memset(dst + (size_t)depth * es, 0, 2);
			continue;
		}
		const uint16_t *s = (const uint16_t *)src + i * ld;
		int d = 0;
		for (; d + VL <= depth; d += VL) vstore((float *)dst + d, vloadh(s + d));
		if (d < depth) vstore((float *)dst + d, vloadh_n(s + d, depth - d));
	}
}

// finish adds what is to be added to a tile's sums t[h][NR] and stores them.
static void finish(int h, int w, const float *t, const dl_gemm_out *o) {
	for (int i = 0; i < h; i++)
		for (int j = 0; j < w; j += VL) {
			int n = w - j < VL ? w - j : VL;
			vf v = vload(t + i * NR + j);
			if (o->part) v = vadd(vload(o->part + i * o->part_ld + j), v);
			if (o->type == DL_F32) {
				float *y = (float *)o->y + i * o->ld + j;
				if (n == VL)
					vstore(y, o->add ? vadd(vload(y), v) : v);
				else
					vstore_n(y, o->add ? vadd(vload_n(y, n), v) : v, n);
			} else {
				uint16_t *y = (uint16_t *)o->y + i * o->ld + j;
				if (n == VL)
					vstoreh(y, o->add ? vadd(vloadh(y), v) : v);
				else
					vstoreh_n(y, o->add ? vadd(vloadh_n(y, n), v) : v, n);
			}
		}
}

DL_INLINE vf broadcast_(const char *p) {
	float f;
	memcpy(&f, p, 4);
	return vset1(f);
}

// tile_ keeps h rows of nv vectors in registers; h and nv are constants where
// it is inlined. Every third row of a has a pointer; the others are at one and
// two rows from it, which addresses can say.
DL_INLINE void tile_(const int h, const int nv, int w, int depth, const dl_gemm_left *a, const float *b, const dl_gemm_out *o) {
	enum { GROUPS = (MR + 2) / 3 };
	vf acc[MR][NV];
	const char *g[GROUPS];
	size_t row = a->row, step = a->step;
	int es = o->type == DL_F32 ? 4 : 2;
#pragma GCC unroll 16
	for (int k = 0; k < (h + 2) / 3; k++) g[k] = a->p + 3 * k * row;
#pragma GCC unroll 16
	for (int i = 0; i < h; i++) {
		for (int j = 0; j < NR * es; j += 64) __builtin_prefetch((char *)o->y + i * o->ld * es + j, 1);
#pragma GCC unroll 4
		for (int j = 0; j < nv; j++) acc[i][j] = vzero();
	}
	for (int d = 0; d < depth - a->odd; d++) {
		vf bv[NV];
#pragma GCC unroll 4
		for (int j = 0; j < nv; j++) bv[j] = vload(b + j * VL);
#pragma GCC unroll 16
		for (int i = 0; i < h; i++) {
			vf av = broadcast_(g[i / 3] + i % 3 * row);
#pragma GCC unroll 4
			for (int j = 0; j < nv; j++) acc[i][j] = DL_MADD(av, bv[j], acc[i][j]);
		}
#pragma GCC unroll 16
		for (int k = 0; k < (h + 2) / 3; k++) {
			g[k] += step;
			__asm__("" : "+r"(g[k])); // or the compiler makes other pointers of them
		}
		b += NR;
	}
#if DL_PAIR
	if (a->odd) {
#pragma GCC unroll 16
		for (int i = 0; i < h; i++) {
			uint16_t half;
			memcpy(&half, g[i / 3] + i % 3 * row, 2);
			vf av = (vf)_mm512_set1_epi32(half);
#pragma GCC unroll 4
			for (int j = 0; j < nv; j++) acc[i][j] = DL_MADD(av, vload(b + j * VL), acc[i][j]);
		}
	}
#endif
	if (w == NR && nv == NV && !o->part) {
		if (o->type == DL_F32) {
#pragma GCC unroll 16
			for (int i = 0; i < h; i++)
#pragma GCC unroll 4
				for (int j = 0; j < nv; j++) {
					float *y = (float *)o->y + i * o->ld + j * VL;
					vstore(y, o->add ? vadd(vload(y), acc[i][j]) : acc[i][j]);
				}
			return;
		}
#if DL_PAIR
		if (o->add) goto other;
		uint16_t *y = o->y;
#pragma GCC unroll 16
		for (int i = 0; i < h; i++) vstore((float *)(y + i * o->ld), join_(acc[i][0], acc[i][1]));
		return;
	other:;
#endif
	}
	float t[MR * NR];
#pragma GCC unroll 16
	for (int i = 0; i < h; i++)
#pragma GCC unroll 4
		for (int j = 0; j < nv; j++) vstore(t + i * NR + j * VL, acc[i][j]);
	finish(h, w, t, o);
}

#if defined(DL_HALF_MADD)
// half_ is tile_ for columns that half a vector holds, of which the processor
// broadcasts twice as many in a cycle: one column over a multiple of NR costs
// half as much.
DL_INLINE void half_(const int h, int w, int depth, const dl_gemm_left *a, const float *b, const dl_gemm_out *o) {
	enum { GROUPS = (MR + 2) / 3 };
	__m256 acc[MR];
	const char *g[GROUPS];
	size_t row = a->row, step = a->step;
#pragma GCC unroll 16
	for (int k = 0; k < (h + 2) / 3; k++) g[k] = a->p + 3 * k * row;
#pragma GCC unroll 16
	for (int i = 0; i < h; i++) acc[i] = _mm256_setzero_ps();
	for (int d = 0; d < depth - a->odd; d++, b += NR) {
		__m256 bv = _mm256_loadu_ps(b);
#pragma GCC unroll 16
		for (int i = 0; i < h; i++) {
			float f;
			memcpy(&f, g[i / 3] + i % 3 * row, 4);
			acc[i] = DL_HALF_MADD(_mm256_set1_ps(f), bv, acc[i]);
		}
#pragma GCC unroll 16
		for (int k = 0; k < (h + 2) / 3; k++) {
			g[k] += step;
			__asm__("" : "+r"(g[k]));
		}
	}
	float t[MR * NR] = {0};
#pragma GCC unroll 16
	for (int i = 0; i < h; i++) {
		uint16_t last = 0;
		if (a->odd) {
			memcpy(&last, g[i / 3] + i % 3 * row, 2);
			acc[i] = DL_HALF_MADD(_mm256_castsi256_ps(_mm256_set1_epi32(last)), _mm256_loadu_ps(b), acc[i]);
		}
		_mm256_storeu_ps(t + i * NR, acc[i]);
	}
	finish(h, w, t, o);
}
#else
#define half_(h, ...) tile_(h, 1, __VA_ARGS__)
#endif

#define DL_TILE_CASE(H)                               \
	case H:                                           \
		if (w > VL)                                   \
			tile_(H, NV, w, depth, a, bf, out);       \
		else if (w > VL / 2)                          \
			tile_(H, 1, w, depth, a, bf, out);        \
		else                                          \
			half_(H, w, depth, a, bf, out);           \
		break

static void tile(int h, int w, int depth, const dl_gemm_left *a, const uint32_t *b, const dl_gemm_out *out) {
	const float *bf = (const float *)b;
	switch (h) {
		DL_TILE_CASE(1);
		DL_TILE_CASE(2);
		DL_TILE_CASE(3);
		DL_TILE_CASE(4);
		DL_TILE_CASE(5);
		DL_TILE_CASE(6);
#if MR > 6
		DL_TILE_CASE(7);
		DL_TILE_CASE(8);
		DL_TILE_CASE(9);
		DL_TILE_CASE(10);
		DL_TILE_CASE(11);
		DL_TILE_CASE(12);
		DL_TILE_CASE(13);
		DL_TILE_CASE(14);
#endif
	}
}

const dl_gemm_isa DL_NAME(dl_gemm_isa) = {MR, NR, DL_PAIR, rows, cols, copy, tile, probe};
