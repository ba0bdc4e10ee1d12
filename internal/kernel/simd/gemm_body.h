// The element loops of a matrix product, for one instruction set. The file
// that includes this has included an isa_*.h and defined MR and NV, the
// register tile in rows and vectors, and DL_PAIR.
#include "gemm.h"
#include "gemm_isa.h"

#define NR (NV * VL)

// An element of the source as packed: a float, or two bf16.
DL_INLINE uint32_t one_(const void *src, int type, size_t i) {
	uint32_t u;
	if (type == DL_F32) {
		memcpy(&u, (const float *)src + i, 4);
		return u;
	}
	return (uint32_t)((const uint16_t *)src)[i] << 16;
}

DL_INLINE uint32_t half_(const void *src, int type, size_t i) {
	return type == DL_F32 ? dl_to_bf16(((const float *)src)[i]) : ((const uint16_t *)src)[i];
}

// lanes_ loads VL packed elements that lie along the depth, from index i.
DL_INLINE vf lanes_(const void *src, int type, size_t i) {
#if DL_PAIR
	vf v;
	if (type == DL_F32) {
		uint16_t t[2 * VL];
		vstoreh(t, vload((const float *)src + i));
		vstoreh(t + VL, vload((const float *)src + i + VL));
		memcpy(&v, t, sizeof v);
	} else {
		memcpy(&v, (const uint16_t *)src + i, sizeof v);
	}
	return v;
#else
	return type == DL_F32 ? vload((const float *)src + i) : vloadh((const uint16_t *)src + i);
#endif
}

enum { PER = DL_PAIR ? 2 : 1 };

DL_INLINE void rows_(uint32_t *dst, int stride, const void *src, size_t ld, const int type, int h, int depth) {
	int packed = (depth + PER - 1) / PER, full = depth / PER / VL * VL;
	size_t esize = type == DL_F32 ? 4 : 2;
	for (int d = 0; d < full; d += VL) {
		if (stride == 1) {
			vstore((float *)dst + d, lanes_(src, type, (size_t)d * PER));
			continue;
		}
		for (int i0 = 0; i0 < stride; i0 += VL) {
			vf r[VL];
			for (int i = 0; i < VL; i++)
				r[i] = i0 + i < h ? lanes_((const char *)src + (i0 + i) * ld * esize, type, (size_t)d * PER) : vzero();
			transpose_(r);
			for (int i = 0; i < VL; i++) {
				// A partial last vector is overwritten by the next row's first.
				if (i0 == 0 || i0 + VL <= stride)
					vstore((float *)dst + (size_t)(d + i) * stride + i0, r[i]);
				else
					vstore_n((float *)dst + (size_t)(d + i) * stride + i0, r[i], stride - i0);
			}
		}
	}
	for (int i = 0; i < stride; i++) {
		const char *row = (const char *)src + i * ld * esize;
		for (int d = full; d < packed; d++) {
			uint32_t u = 0;
			if (i < h) {
#if DL_PAIR
				u = half_(row, type, (size_t)2 * d);
				if (2 * d + 1 < depth) u |= half_(row, type, (size_t)2 * d + 1) << 16;
#else
				u = one_(row, type, d);
#endif
			}
			dst[(size_t)d * stride + i] = u;
		}
	}
}

static void rows(uint32_t *dst, int stride, const void *src, size_t ld, int type, int h, int depth) {
	if (type == DL_F32)
		rows_(dst, stride, src, ld, DL_F32, h, depth);
	else
		rows_(dst, stride, src, ld, DL_B16, h, depth);
}

#if DL_PAIR
// pair_ joins element c of two rows for VL columns, n of them real.
DL_INLINE vf pair_(const void *r0, const void *r1, int type, int c, int n) {
	__m512i lo, hi;
	if (type == DL_F32) {
		lo = _mm512_cvtepu16_epi32(vnarrow_(vload_n((const float *)r0 + c, n)));
		hi = _mm512_cvtepu16_epi32(vnarrow_(r1 ? vload_n((const float *)r1 + c, n) : vzero()));
	} else {
		lo = _mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(vmask_(n), (const uint16_t *)r0 + c));
		hi = r1 ? _mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(vmask_(n), (const uint16_t *)r1 + c)) : _mm512_setzero_si512();
	}
	return _mm512_castsi512_ps(_mm512_or_si512(lo, _mm512_slli_epi32(hi, 16)));
}
#endif

DL_INLINE void cols_(uint32_t *dst, int stride, const void *src, size_t ld, const int type, int w, int depth) {
	size_t esize = type == DL_F32 ? 4 : 2;
	for (int d = 0; d < depth; d += PER) {
		const char *row = (const char *)src + d * ld * esize;
		float *out = (float *)dst + (size_t)(d / PER) * stride;
		for (int c = 0; c < stride; c += VL) {
			int n = w - c < 0 ? 0 : w - c < VL ? w - c : VL;
#if DL_PAIR
			vf v = pair_(row, d + 1 < depth ? row + ld * esize : NULL, type, c, n);
#else
			vf v;
			if (type == DL_F32)
				v = n == VL ? vload((const float *)row + c) : vload_n((const float *)row + c, n);
			else
				v = n == VL ? vloadh((const uint16_t *)row + c) : vloadh_n((const uint16_t *)row + c, n);
#endif
			if (c + VL <= stride || c == 0)
				vstore(out + c, v);
			else
				vstore_n(out + c, v, stride - c);
		}
	}
}

static void cols(uint32_t *dst, int stride, const void *src, size_t ld, int type, int w, int depth) {
	if (type == DL_F32)
		cols_(dst, stride, src, ld, DL_F32, w, depth);
	else
		cols_(dst, stride, src, ld, DL_B16, w, depth);
}

// tile_ keeps h rows of nv vectors in registers; h and nv are constants where
// it is inlined.
DL_INLINE void tile_(const int h, const int nv, int w, int depth, const float *a, const float *b, float *c, size_t ldc, int add) {
	vf acc[MR][NV];
#pragma GCC unroll 16
	for (int i = 0; i < h; i++)
#pragma GCC unroll 4
		for (int j = 0; j < nv; j++) acc[i][j] = vzero();
	for (int d = 0; d < depth; d++) {
		vf bv[NV];
#pragma GCC unroll 4
		for (int j = 0; j < nv; j++) bv[j] = vload(b + j * VL);
#pragma GCC unroll 16
		for (int i = 0; i < h; i++) {
			vf av = vset1(a[i]);
#pragma GCC unroll 4
			for (int j = 0; j < nv; j++) acc[i][j] = DL_MADD(av, bv[j], acc[i][j]);
		}
		a += h;
		b += NR;
	}
	if (w == nv * VL) {
#pragma GCC unroll 16
		for (int i = 0; i < h; i++)
#pragma GCC unroll 4
			for (int j = 0; j < nv; j++) {
				float *p = c + i * ldc + j * VL;
				vstore(p, add ? vadd(vload(p), acc[i][j]) : acc[i][j]);
			}
		return;
	}
#pragma GCC unroll 16
	for (int i = 0; i < h; i++)
#pragma GCC unroll 4
		for (int j = 0; j < nv; j++) {
			int n = w - j * VL < VL ? w - j * VL : VL;
			float *p = c + i * ldc + j * VL;
			vstore_n(p, add ? vadd(vload_n(p, n), acc[i][j]) : acc[i][j], n);
		}
}

#define DL_TILE_CASE(H)                                           \
	case H:                                                       \
		if (w > VL)                                               \
			tile_(H, NV, w, depth, af, bf, c, ldc, add);          \
		else                                                      \
			tile_(H, 1, w, depth, af, bf, c, ldc, add);           \
		break

static void tile(int h, int w, int depth, const uint32_t *a, const uint32_t *b, float *c, size_t ldc, int add) {
	const float *af = (const float *)a, *bf = (const float *)b;
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

static void narrow(uint16_t *y, size_t ldy, const float *c, size_t ldc, int h, int w, int add) {
	for (int i = 0; i < h; i++, y += ldy, c += ldc) {
		int j = 0;
		for (; j + VL <= w; j += VL) {
			vf v = vload(c + j);
			vstoreh(y + j, add ? vadd(vloadh(y + j), v) : v);
		}
		if (j < w) {
			vf v = vload_n(c + j, w - j);
			vstoreh_n(y + j, add ? vadd(vloadh_n(y + j, w - j), v) : v, w - j);
		}
	}
}

const dl_gemm_isa DL_NAME(dl_gemm_isa) = {MR, NR, DL_PAIR, rows, cols, tile, narrow, probe};
