// AVX2 with FMA and F16C. Everything after this header, up to isa_end.h, is
// compiled for it.
#include "isa.h"

#define DL_SUFFIX _avx2
#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx2,fma,f16c"))), apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx2,fma,f16c")
#endif

#define VL 8
#define vf __m256

DL_INLINE vf vload(const float *p) { return _mm256_loadu_ps(p); }
DL_INLINE void vstore(float *p, vf v) { _mm256_storeu_ps(p, v); }
DL_INLINE vf vzero(void) { return _mm256_setzero_ps(); }
DL_INLINE vf vset1(float f) { return _mm256_set1_ps(f); }
DL_INLINE __m256i vmask_(int n) {
	return _mm256_cmpgt_epi32(_mm256_set1_epi32(n), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}
DL_INLINE vf vload_n(const float *p, int n) { return _mm256_maskload_ps(p, vmask_(n)); }
DL_INLINE void vstore_n(float *p, vf v, int n) { _mm256_maskstore_ps(p, vmask_(n), v); }
DL_INLINE vf vwiden_(__m128i h) { return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(h), 16)); }
DL_INLINE __m128i vnarrow_(vf v) {
	__m256i u = _mm256_castps_si256(v);
	__m256i odd = _mm256_and_si256(_mm256_srli_epi32(u, 16), _mm256_set1_epi32(1));
	__m256i r = _mm256_srli_epi32(_mm256_add_epi32(_mm256_add_epi32(u, _mm256_set1_epi32(0x7fff)), odd), 16);
	__m256i q = _mm256_or_si256(_mm256_srli_epi32(u, 16), _mm256_set1_epi32(0x40));
	r = _mm256_blendv_epi8(r, q, _mm256_castps_si256(_mm256_cmp_ps(v, v, _CMP_UNORD_Q)));
	return _mm_packus_epi32(_mm256_castsi256_si128(r), _mm256_extracti128_si256(r, 1));
}
DL_INLINE vf vloadh(const uint16_t *p) { return vwiden_(_mm_loadu_si128((const __m128i *)p)); }
DL_INLINE void vstoreh(uint16_t *p, vf v) { _mm_storeu_si128((__m128i *)p, vnarrow_(v)); }
// The first n elements are moved as a four, a two and a one.
DL_INLINE vf vloadh_n(const uint16_t *p, int n) {
	if (n == 8) return vloadh(p);
	uint64_t four = 0;
	uint32_t two = 0;
	if (n & 4) memcpy(&four, p, 8);
	if (n & 2) memcpy(&two, p + (n & 4), 4);
	const uint64_t one = n & 1 ? p[n - 1] : 0, rest = n & 2 ? two | one << 32 : one;
	return vwiden_(n & 4 ? _mm_set_epi64x((long long)rest, (long long)four) : _mm_cvtsi64_si128((long long)rest));
}
DL_INLINE void vstoreh_n(uint16_t *p, vf v, int n) {
	__m128i h = vnarrow_(v);
	if (n == 8) {
		_mm_storeu_si128((__m128i *)p, h);
		return;
	}
	if (n & 4) {
		_mm_storel_epi64((__m128i *)p, h);
		h = _mm_unpackhi_epi64(h, h);
		p += 4;
	}
	if (n & 2) {
		const int two = _mm_cvtsi128_si32(h);
		memcpy(p, &two, 4);
		h = _mm_srli_epi64(h, 32);
		p += 2;
	}
	if (n & 1) *p = (uint16_t)_mm_cvtsi128_si32(h);
}
DL_INLINE vf vadd(vf a, vf b) { return _mm256_add_ps(a, b); }
DL_INLINE vf vsub(vf a, vf b) { return _mm256_sub_ps(a, b); }
DL_INLINE vf vmul(vf a, vf b) { return _mm256_mul_ps(a, b); }
DL_INLINE vf vdiv(vf a, vf b) { return _mm256_div_ps(a, b); }
DL_INLINE vf vmax(vf a, vf b) { return _mm256_max_ps(a, b); }
DL_INLINE vf vmin(vf a, vf b) { return _mm256_min_ps(a, b); }
DL_INLINE vf vfma(vf a, vf b, vf c) { return _mm256_fmadd_ps(a, b, c); }
DL_INLINE vf vsqrt(vf a) { return _mm256_sqrt_ps(a); }
DL_INLINE float vsum(vf a) {
	__m128 s = _mm_add_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));
	s = _mm_add_ps(s, _mm_movehl_ps(s, s));
	return _mm_cvtss_f32(_mm_add_ss(s, _mm_movehdup_ps(s)));
}
DL_INLINE float vmaxall(vf a) {
	__m128 s = _mm_max_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));
	s = _mm_max_ps(s, _mm_movehl_ps(s, s));
	return _mm_cvtss_f32(_mm_max_ss(s, _mm_movehdup_ps(s)));
}
