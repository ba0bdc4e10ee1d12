// Vector functions on top of the isa macros: selection, exponential, arc
// tangent, and vectors vd of VD doubles. Define DL_VEC_PORTABLE before it for
// the portable variant.
#include "vec_wide.h"

// vsel_gt: a > b ? x : y, element by element; false where one is NaN (the
// portable one is in isa_generic.h).
// vpow2_(t): 2^n for t = n + 1.5*2^23, -127 < n < 128.
// vfused: a*b + c with one rounding (vfma may use two).
// vrecip: 1/x within 2 units of the last place, for normal x and 1/x.
#if defined(DL_VEC_PORTABLE)
DL_INLINE vf vpow2_(vf t) {
	typedef uint32_t DL_NAME(vu_t) __attribute__((vector_size(32)));
	return (vf)(((DL_NAME(vu_t))t + 127) << 23);
}
DL_INLINE vf vrecip(vf x) { return vdiv(vset1(1), x); }
DL_INLINE vf vfused(vf a, vf b, vf c) { // a product of floats is exact in double
	typedef float DL_NAME(vq_t) __attribute__((vector_size(16)));
	typedef double DL_NAME(vr_t) __attribute__((vector_size(32)));
#define WIDE(x) __builtin_convertvector(x, DL_NAME(vr_t))
	DL_NAME(vq_t) x[2], y[2], z[2];
	memcpy(x, &a, sizeof x);
	memcpy(y, &b, sizeof y);
	memcpy(z, &c, sizeof z);
	for (int i = 0; i < 2; i++) z[i] = __builtin_convertvector(WIDE(x[i]) * WIDE(y[i]) + WIDE(z[i]), DL_NAME(vq_t));
#undef WIDE
	memcpy(&c, z, sizeof c);
	return c;
}
#define VD 4
#elif VL == 16
DL_INLINE vf vsel_gt(vf a, vf b, vf x, vf y) { return _mm512_mask_blend_ps(_mm512_cmp_ps_mask(a, b, _CMP_GT_OQ), y, x); }
DL_INLINE vf vpow2_(vf t) {
	return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_add_epi32(_mm512_castps_si512(t), _mm512_set1_epi32(127)), 23));
}
DL_INLINE vf vrecip(vf x) { // 14 bits, then one Newton step; a quotient takes 16 cycles
	vf r = _mm512_rcp14_ps(x);
	return vmul(r, _mm512_fnmadd_ps(x, r, vset1(2)));
}
DL_INLINE vf vfused(vf a, vf b, vf c) { return vfma(a, b, c); }
#define VD 8
#else
DL_INLINE vf vsel_gt(vf a, vf b, vf x, vf y) { return _mm256_blendv_ps(y, x, _mm256_cmp_ps(a, b, _CMP_GT_OQ)); }
DL_INLINE vf vpow2_(vf t) {
	return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_add_epi32(_mm256_castps_si256(t), _mm256_set1_epi32(127)), 23));
}
DL_INLINE vf vrecip(vf x) { return vdiv(vset1(1), x); }
DL_INLINE vf vfused(vf a, vf b, vf c) { return vfma(a, b, c); }
#define VD 4
#endif

// vexps: e^x of n vectors, within 2 units of the last place on [-87.3, 88.3];
// beyond, the value at the nearer end. NaN stays NaN: vmin and vmax return
// their second argument when either is NaN.
DL_INLINE void vexps(vf *x, int n) {
	static const float c[] = {1.3981999507e-3f, 8.3334519073e-3f, 4.1665795894e-2f, 1.6666665459e-1f, 5.0000001201e-1f};
	const vf magic = vset1(12582912.0f), one = vset1(1.0f);
	vf t[VECS], r[VECS], p[VECS];
	EACH(j, n) x[j] = vmax(vset1(-87.3f), vmin(vset1(88.3f), x[j]));
	EACH(j, n) t[j] = vfma(x[j], vset1(1.44269504f), magic);
	EACH(j, n) r[j] = vfma(vsub(t[j], magic), vset1(-0.693359375f), x[j]);
	EACH(j, n) r[j] = vfma(vsub(t[j], magic), vset1(2.12194440e-4f), r[j]);
	EACH(j, n) p[j] = vset1(1.9875691500e-4f);
#pragma GCC unroll 5
	for (int i = 0; i < 5; i++) EACH(j, n) p[j] = vfma(p[j], r[j], vset1(c[i]));
	EACH(j, n) p[j] = vadd(vfma(p[j], vmul(r[j], r[j]), r[j]), one);
	EACH(j, n) x[j] = vmul(p[j], vpow2_(t[j]));
}

DL_INLINE vf vexp(vf x) {
	vexps(&x, 1);
	return x;
}

// vatan2s: atan2(y, x) of n vectors for x >= 0, to y; absolute error below
// 1e-7; 0 for y = x = 0. Odd polynomial on [0, 1] of Abramowitz and Stegun
// 4.4.49 (error 2e-8).
DL_INLINE void vatan2s(vf *y, const vf *x, int n) {
	static const float c[] = {-0.0161657367f, 0.0429096138f, -0.0752896400f, 0.1065626393f, -0.1420889944f, 0.1999355085f, -0.3333314528f};
	vf a[VECS], q[VECS], s[VECS], p[VECS];
	EACH(j, n) a[j] = vmax(vsub(vzero(), y[j]), y[j]);
	EACH(j, n) s[j] = vmax(x[j], a[j]);
	EACH(j, n) q[j] = vdiv(vmin(x[j], a[j]), vsel_gt(s[j], vzero(), s[j], vset1(1)));
	EACH(j, n) s[j] = vmul(q[j], q[j]);
	EACH(j, n) p[j] = vset1(0.0028662257f);
#pragma GCC unroll 7
	for (int i = 0; i < 7; i++) EACH(j, n) p[j] = vfma(p[j], s[j], vset1(c[i]));
	EACH(j, n) p[j] = vfma(vmul(p[j], s[j]), q[j], q[j]);
	EACH(j, n) p[j] = vsel_gt(a[j], x[j], vsub(vset1(1.57079632679f), p[j]), p[j]);
	EACH(j, n) y[j] = vsel_gt(vzero(), y[j], vsub(vzero(), p[j]), p[j]);
}

// vlogistics: e = e^-u and s = 1/(1+e) of n vectors.
DL_INLINE void vlogistics(vf *s, vf *e, const vf *u, int n) {
	EACH(j, n) e[j] = vsub(vzero(), u[j]);
	vexps(e, n);
	EACH(j, n) s[j] = vrecip(vadd(vset1(1), e[j]));
}

// vlogisticsh: the same for what is rounded to bf16, within 7e-5 of the value,
// in half the instructions: e^-u = 2^whole * 2^part, part in [0, 1).
#if !defined(DL_VEC_PORTABLE) && VL == 16
DL_INLINE void vlogisticsh(vf *s, vf *e, const vf *u, int n) {
	static const float c[] = {5.201146e-2f, 2.4144275e-1f, 6.9300383e-1f, 1.0000026f};
	vf t[VECS], f[VECS];
	EACH(j, n) t[j] = vmin(vset1(125), vmul(u[j], vset1(-1.44269504f)));
	EACH(j, n) f[j] = _mm512_reduce_ps(t[j], _MM_FROUND_TO_NEG_INF);
	EACH(j, n) e[j] = vset1(1.3534167e-2f);
#pragma GCC unroll 4
	for (int i = 0; i < 4; i++) EACH(j, n) e[j] = vfma(e[j], f[j], vset1(c[i]));
	EACH(j, n) e[j] = _mm512_scalef_ps(e[j], t[j]);
	EACH(j, n) s[j] = _mm512_rcp14_ps(vadd(vset1(1), e[j]));
}
#else
DL_INLINE void vlogisticsh(vf *s, vf *e, const vf *u, int n) { vlogistics(s, e, u, n); }
#endif

typedef double DL_NAME(vd_t) __attribute__((vector_size(8 * VD)));
typedef int64_t DL_NAME(vl_t) __attribute__((vector_size(8 * VD)));
typedef float DL_NAME(vn_t) __attribute__((vector_size(4 * VD)));
#define vd DL_NAME(vd_t)
#define vl DL_NAME(vl_t)
#define vn DL_NAME(vn_t)

// vd_sel: x where the mask m (all ones or zeros) is set, else y.
DL_INLINE vd vd_sel(vl m, vd x, vd y) { return (vd)(((vl)x & m) | ((vl)y & ~m)); }
DL_INLINE vd vd_set1(double x) { vd v; for (int i = 0; i < VD; i++) v[i] = x; return v; }
DL_INLINE vd vd_load(const float *p) { vn f; memcpy(&f, p, sizeof f); return __builtin_convertvector(f, vd); }
DL_INLINE void vd_store(float *p, vd v) { vn f = __builtin_convertvector(v, vn); memcpy(p, &f, sizeof f); }
// vd_load_n and vd_store_n touch the first n elements only; vd_first(n) is the
// mask of the first n.
#if VD == 8
DL_INLINE vd vd_load_n(const float *p, int n) { return (vd)_mm512_cvtps_pd(_mm256_maskz_loadu_ps((__mmask8)((1u << n) - 1), p)); }
DL_INLINE void vd_store_n(float *p, vd v, int n) { _mm256_mask_storeu_ps(p, (__mmask8)((1u << n) - 1), _mm512_cvtpd_ps((__m512d)v)); }
DL_INLINE vl vd_first(int n) { return (vl)_mm512_movm_epi64((__mmask8)((1u << n) - 1)); }
#else
DL_INLINE vd vd_load_n(const float *p, int n) { float t[VD] = {0}; for (int i = 0; i < n; i++) t[i] = p[i]; return vd_load(t); }
DL_INLINE void vd_store_n(float *p, vd v, int n) { float t[VD]; vd_store(t, v); for (int i = 0; i < n; i++) p[i] = t[i]; }
DL_INLINE vl vd_first(int n) { vl v; for (int i = 0; i < VD; i++) v[i] = -(int64_t)(i < n); return v; }
#endif
// vd_part: doubles j*VD to (j+1)*VD of v.
#if defined(DL_VEC_PORTABLE)
DL_INLINE vd vd_part(vf v, int j) { vn h[VL / VD]; memcpy(h, &v, sizeof h); return __builtin_convertvector(h[j], vd); }
#elif VD == 8
DL_INLINE vd vd_part(vf v, int j) { return (vd)_mm512_cvtps_pd(j ? _mm512_extractf32x8_ps(v, 1) : _mm512_castps512_ps256(v)); }
#else
DL_INLINE vd vd_part(vf v, int j) { return (vd)_mm256_cvtps_pd(j ? _mm256_extractf128_ps(v, 1) : _mm256_castps256_ps128(v)); }
#endif
DL_INLINE double vd_sum(vd v) { double s = v[0]; for (int i = 1; i < VD; i++) s += v[i]; return s; }

// vd_fma: a*b + c, fused where the processor can.
#if defined(DL_VEC_PORTABLE)
DL_INLINE vd vd_fma(vd a, vd b, vd c) { return a * b + c; }
#elif VD == 8
DL_INLINE vd vd_fma(vd a, vd b, vd c) { return (vd)_mm512_fmadd_pd((__m512d)a, (__m512d)b, (__m512d)c); }
#else
DL_INLINE vd vd_fma(vd a, vd b, vd c) { return (vd)_mm256_fmadd_pd((__m256d)a, (__m256d)b, (__m256d)c); }
#endif

// vd_exps: e^x of n vectors for x <= 0, about 1e-15 relative; below -708 the
// value there. NaN stays NaN.
DL_INLINE void vd_exps(vd *x, int n) {
	const double magic = 6755399441055744.0; // 1.5*2^52
	static const double inverse_factorials[] = { // of 12 down to 2
		2.08767569878681e-09, 2.505210838544172e-08, 2.755731922398589e-07, 2.7557319223985893e-06, 2.48015873015873e-05, 1.984126984126984e-04,
		1.388888888888889e-03, 8.333333333333333e-03, 4.1666666666666664e-02, 1.6666666666666666e-01, 0.5};
	vd t[VECS], r[VECS], p[VECS];
	EACH(j, n) x[j] = vd_sel((vl)(x[j] < -708.0), vd_set1(-708.0), x[j]);
	EACH(j, n) t[j] = vd_fma(x[j], vd_set1(1.4426950408889634), vd_set1(magic));
	EACH(j, n) r[j] = vd_fma(t[j] - magic, vd_set1(-6.93147180369123816490e-01), x[j]);
	EACH(j, n) r[j] = vd_fma(t[j] - magic, vd_set1(-1.90821492927058770002e-10), r[j]);
	EACH(j, n) p[j] = vd_set1(1.6059043836821613e-10); // 1/13!
#pragma GCC unroll 11
	for (int i = 0; i < 11; i++) EACH(j, n) p[j] = vd_fma(p[j], r[j], vd_set1(inverse_factorials[i]));
	EACH(j, n) p[j] = vd_fma(p[j], r[j] * r[j], r[j]) + 1.0;
	EACH(j, n) x[j] = p[j] * (vd)(((vl)t[j] + 1023) << 52);
}
