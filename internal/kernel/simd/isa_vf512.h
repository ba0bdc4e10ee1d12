// The vector macros of isa.h on AVX-512, for isa_avx512.h and for the tile
// kernels that need them beside isa_amx.h.
#ifndef VL
#define VL 16
#define vf __m512
#endif

DL_INLINE vf vload(const float *p) { return _mm512_loadu_ps(p); }
DL_INLINE void vstore(float *p, vf v) { _mm512_storeu_ps(p, v); }
DL_INLINE vf vzero(void) { return _mm512_setzero_ps(); }
DL_INLINE vf vset1(float f) { return _mm512_set1_ps(f); }
DL_INLINE __mmask16 vmask_(int n) { return (__mmask16)((1u << n) - 1); }
DL_INLINE vf vload_n(const float *p, int n) { return _mm512_maskz_loadu_ps(vmask_(n), p); }
DL_INLINE void vstore_n(float *p, vf v, int n) { _mm512_mask_storeu_ps(p, vmask_(n), v); }
DL_INLINE vf vwiden_(__m256i h) { return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(h), 16)); }
#if defined(DL_WITH_BF16)
DL_INLINE __m256i vnarrow_(vf v) { return (__m256i)_mm512_cvtneps_pbh(v); }
#else
DL_INLINE __m256i vnarrow_(vf v) {
	__m512i u = _mm512_castps_si512(v);
	__m512i odd = _mm512_and_si512(_mm512_srli_epi32(u, 16), _mm512_set1_epi32(1));
	__m512i r = _mm512_srli_epi32(_mm512_add_epi32(_mm512_add_epi32(u, _mm512_set1_epi32(0x7fff)), odd), 16);
	__mmask16 nan = _mm512_cmp_ps_mask(v, v, _CMP_UNORD_Q);
	r = _mm512_mask_or_epi32(r, nan, _mm512_srli_epi32(u, 16), _mm512_set1_epi32(0x40));
	return _mm512_cvtepi32_epi16(r);
}
#endif
DL_INLINE vf vloadh(const uint16_t *p) { return vwiden_(_mm256_loadu_si256((const __m256i *)p)); }
DL_INLINE void vstoreh(uint16_t *p, vf v) { _mm256_storeu_si256((__m256i *)p, vnarrow_(v)); }
DL_INLINE vf vloadh_n(const uint16_t *p, int n) { return vwiden_(_mm256_maskz_loadu_epi16(vmask_(n), p)); }
DL_INLINE void vstoreh_n(uint16_t *p, vf v, int n) { _mm256_mask_storeu_epi16(p, vmask_(n), vnarrow_(v)); }
DL_INLINE vf vadd(vf a, vf b) { return _mm512_add_ps(a, b); }
DL_INLINE vf vsub(vf a, vf b) { return _mm512_sub_ps(a, b); }
DL_INLINE vf vmul(vf a, vf b) { return _mm512_mul_ps(a, b); }
DL_INLINE vf vdiv(vf a, vf b) { return _mm512_div_ps(a, b); }
DL_INLINE vf vmax(vf a, vf b) { return _mm512_max_ps(a, b); }
DL_INLINE vf vmin(vf a, vf b) { return _mm512_min_ps(a, b); }
DL_INLINE vf vfma(vf a, vf b, vf c) { return _mm512_fmadd_ps(a, b, c); }
DL_INLINE vf vsqrt(vf a) { return _mm512_sqrt_ps(a); }
DL_INLINE float vsum(vf a) { return _mm512_reduce_add_ps(a); }
DL_INLINE float vmaxall(vf a) { return _mm512_reduce_max_ps(a); }
