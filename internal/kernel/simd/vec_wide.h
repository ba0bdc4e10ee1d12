// Groups of vectors. A chain of dependent instructions keeps a vector unit
// idle most of the time, and the processor looks only some 100 instructions
// ahead for others; so kernels work on n vectors at once, n = VECS in the body
// of a loop and 1 at its end, one step for all before the next.

// EACH(j, n) runs a statement for each vector of a group.
#define DL_PRAGMA(x) _Pragma(#x)
#define EACH(j, n) DL_PRAGMA(GCC unroll 4) for (int j = 0; j < (n); j++)

#if defined(DL_VEC_PORTABLE)
#define VECS 2
#else
#define VECS 4
#endif

// BY_GROUPS calls step(..., i, n, k) for i over [from, to) by groups: n vectors
// that begin at element i, of which the last (and only) one may be partial, k
// elements.
#define BY_GROUPS(from, to, step, ...)                                                      \
	do {                                                                                    \
		int64_t i_ = (from);                                                                \
		const int64_t to_ = (to);                                                           \
		for (; i_ + VECS * VL <= to_; i_ += VECS * VL) step(__VA_ARGS__, i_, VECS, VL);     \
		for (; i_ + VL <= to_; i_ += VL) step(__VA_ARGS__, i_, 1, VL);                      \
		if (i_ < to_) step(__VA_ARGS__, i_, 1, (int)(to_ - i_));                            \
	} while (0)

// vloads and vstores move a group of floats, vloadsh and vstoresh one of bf16.
DL_INLINE void vloads(vf *v, const float *p, int n, int k) {
	if (k < VL) v[0] = vload_n(p, k);
	else EACH(j, n) v[j] = vload(p + j * VL);
}
DL_INLINE void vstores(float *p, const vf *v, int n, int k) {
	if (k < VL) vstore_n(p, v[0], k);
	else EACH(j, n) vstore(p + j * VL, v[j]);
}

// vloadh2 and vstoreh2: two vectors of bf16 at once, which costs half the
// instructions of two times one.
#if defined(DL_VEC_PORTABLE)
DL_INLINE void vloadh2(vf v[2], const uint16_t *p) { v[0] = vloadh(p), v[1] = vloadh(p + VL); }
DL_INLINE void vstoreh2(uint16_t *p, const vf v[2]) { vstoreh(p, v[0]), vstoreh(p + VL, v[1]); }
#elif VL == 16
DL_INLINE void vloadh2(vf v[2], const uint16_t *p) {
	const __m512i first = _mm512_set_epi16(15, 0, 14, 0, 13, 0, 12, 0, 11, 0, 10, 0, 9, 0, 8, 0, 7, 0, 6, 0, 5, 0, 4, 0, 3, 0, 2, 0, 1, 0, 0, 0);
	const __m512i h = _mm512_loadu_si512(p), second = _mm512_add_epi16(first, _mm512_set1_epi16(16));
	v[0] = _mm512_castsi512_ps(_mm512_maskz_permutexvar_epi16(0xaaaaaaaa, first, h));
	v[1] = _mm512_castsi512_ps(_mm512_maskz_permutexvar_epi16(0xaaaaaaaa, second, h));
}
#if defined(DL_WITH_BF16)
DL_INLINE void vstoreh2(uint16_t *p, const vf v[2]) { _mm512_storeu_si512(p, (__m512i)_mm512_cvtne2ps_pbh(v[1], v[0])); }
#else
// The upper halves round up where the lower ones are above 0x8000, or equal to
// it beside an odd upper half; NaN only gets its quiet bit.
DL_INLINE void vstoreh2(uint16_t *p, const vf v[2]) {
	const __m512i even = _mm512_set_epi16(62, 60, 58, 56, 54, 52, 50, 48, 46, 44, 42, 40, 38, 36, 34, 32, 30, 28, 26, 24, 22, 20, 18, 16, 14, 12, 10, 8, 6, 4, 2, 0);
	const __m512i odd = _mm512_or_si512(even, _mm512_set1_epi16(1));
	const __m512i a = _mm512_castps_si512(v[0]), b = _mm512_castps_si512(v[1]);
	const __mmask32 nan = _mm512_kunpackw(_mm512_cmp_ps_mask(v[1], v[1], _CMP_UNORD_Q), _mm512_cmp_ps_mask(v[0], v[0], _CMP_UNORD_Q));
	const __m512i lo = _mm512_permutex2var_epi16(a, even, b), hi = _mm512_permutex2var_epi16(a, odd, b);
	const __m512i half = _mm512_sub_epi16(_mm512_set1_epi16((short)0x8000), _mm512_and_si512(hi, _mm512_set1_epi16(1)));
	const __mmask32 up = _mm512_cmp_epu16_mask(lo, half, _MM_CMPINT_NLE);
	const __m512i r = _mm512_mask_add_epi16(hi, up, hi, _mm512_set1_epi16(1));
	_mm512_storeu_si512(p, _mm512_mask_blend_epi16(nan, r, _mm512_or_si512(hi, _mm512_set1_epi16(0x40))));
}
#endif
#else
DL_INLINE void vloadh2(vf v[2], const uint16_t *p) {
	const __m256i h = _mm256_permute4x64_epi64(_mm256_loadu_si256((const __m256i *)p), 0xd8), zero = _mm256_setzero_si256();
	v[0] = _mm256_castsi256_ps(_mm256_unpacklo_epi16(zero, h));
	v[1] = _mm256_castsi256_ps(_mm256_unpackhi_epi16(zero, h));
}
DL_INLINE __m256i vround_(vf v) { // bf16 in the upper halves, garbage below
	__m256i u = _mm256_castps_si256(v);
	__m256i odd = _mm256_and_si256(_mm256_srli_epi32(u, 16), _mm256_set1_epi32(1));
	__m256i r = _mm256_add_epi32(_mm256_add_epi32(u, _mm256_set1_epi32(0x7fff)), odd);
	__m256i q = _mm256_or_si256(u, _mm256_set1_epi32(0x400000));
	return _mm256_blendv_epi8(r, q, _mm256_castps_si256(_mm256_cmp_ps(v, v, _CMP_UNORD_Q)));
}
DL_INLINE void vstoreh2(uint16_t *p, const vf v[2]) {
	__m256i a = _mm256_srli_epi32(vround_(v[0]), 16), b = _mm256_srli_epi32(vround_(v[1]), 16);
	_mm256_storeu_si256((__m256i *)p, _mm256_permute4x64_epi64(_mm256_packus_epi32(a, b), 0xd8));
}
#endif

DL_INLINE void vloadsh(vf *v, const uint16_t *p, int n, int k) {
	if (k < VL) v[0] = vloadh_n(p, k);
	else if (n == 1) v[0] = vloadh(p);
	else EACH(j, n / 2) vloadh2(v + 2 * j, p + 2 * j * VL);
}
DL_INLINE void vstoresh(uint16_t *p, const vf *v, int n, int k) {
	if (k < VL) vstoreh_n(p, v[0], k);
	else if (n == 1) vstoreh(p, v[0]);
	else EACH(j, n / 2) vstoreh2(p + 2 * j * VL, v + 2 * j);
}

// Lanes f to k-1 of a vector in memory, 0 <= f < k <= VL; the others read as 0
// and stay untouched. f is 0 where LINES is.
#if !defined(DL_VEC_PORTABLE) && VL == 16
#define LINES 1
DL_INLINE __mmask16 vlanes_(int f, int k) { return (__mmask16)(vmask_(k) & ~vmask_(f)); }
DL_INLINE vf vload_r(const float *p, int f, int k) { return _mm512_maskz_loadu_ps(vlanes_(f, k), p); }
DL_INLINE void vstore_r(float *p, vf v, int f, int k) { _mm512_mask_storeu_ps(p, vlanes_(f, k), v); }
DL_INLINE vf vloadh_r(const uint16_t *p, int f, int k) { return vwiden_(_mm256_maskz_loadu_epi16(vlanes_(f, k), p)); }
DL_INLINE void vstoreh_r(uint16_t *p, vf v, int f, int k) { _mm256_mask_storeu_epi16(p, vlanes_(f, k), vnarrow_(v)); }
// vturn moves lane f to lane 0, f+1 to 1 and so on, around.
DL_INLINE vf vturn(vf v, int f) {
	const __m512i lanes = _mm512_set_epi32(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0);
	return _mm512_permutexvar_ps(_mm512_add_epi32(lanes, _mm512_set1_epi32(f)), v);
}
#else
#define LINES 0
DL_INLINE vf vload_r(const float *p, int f, int k) { return (void)f, vload_n(p, k); }
DL_INLINE void vstore_r(float *p, vf v, int f, int k) { (void)f, vstore_n(p, v, k); }
DL_INLINE vf vloadh_r(const uint16_t *p, int f, int k) { return (void)f, vloadh_n(p, k); }
DL_INLINE void vstoreh_r(uint16_t *p, vf v, int f, int k) { (void)f, vstoreh_n(p, v, k); }
DL_INLINE vf vturn(vf v, int f) { return (void)f, v; }
#endif

// LOADR and STORER move a group of n vectors, or the lanes f to k-1 of one.
#define LOADR(loads, load_r, v, p, n, f, k)                  \
	do {                                                     \
		if ((f) == 0 && (k) == VL) loads(v, p, n, VL);       \
		else (v)[0] = load_r(p, f, k);                       \
	} while (0)
#define STORER(stores, store_r, p, v, n, f, k)               \
	do {                                                     \
		if ((f) == 0 && (k) == VL) stores(p, v, n, VL);      \
		else store_r(p, (v)[0], f, k);                       \
	} while (0)
