// Softmax and its gradient on blocks of scores, transposed: a row for each
// key, a lane for each query, so that what belongs to a query is a vector and
// no sum goes across lanes.

// mask hides keys: rows j of s[n][nv vectors] from `real` on, and with causal
// the keys k0+j after query i0+lane.
static void DL_NAME(mask)(float *s, int64_t ld, int n, int nv, int real, int causal, int k0, int i0) {
	for (int j = 0; j < n; j++) {
		float *row = s + j * ld;
		const int first = j >= real ? nv * VL : causal ? k0 + j - i0 : 0; // query that sees the key
		for (int i = 0; i < nv * VL; i++) row[i] = i < first ? -INFINITY : row[i];
	}
}

// What softmax carries from one block of keys to the next, for each query.
typedef struct {
	vf top[MUL_VECS];   // largest score
	vf sum[MUL_VECS];   // Σ 2^(c*(score-top))
	vf scale[MUL_VECS]; // by which earlier products shrink
} DL_NAME(soft);

// put_pair stores words of two keys, rows of values in lanes, at p: pairs of
// keys where products take pairs, else two rows.
DL_INLINE void DL_NAME(put_pair)(float *p, int64_t ld, vf a, vf b) {
#if DL_PAIR
	const __m512i order = _mm512_set_epi16(31, 15, 30, 14, 29, 13, 28, 12, 27, 11, 26, 10, 25, 9, 24, 8, 23, 7, 22, 6, 21, 5, 20, 4, 19, 3,
	                                       18, 2, 17, 1, 16, 0);
	vstore(p, (vf)_mm512_permutexvar_epi16(order, (__m512i)_mm512_cvtne2ps_pbh(b, a)));
	(void)ld;
#else
	vstore(p, a);
	vstore(p + ld, b);
#endif
}

// softmax turns s[n][nv vectors] in place into words of 2^(c*(s-top)), pairs
// of rows in one where words are pairs.
DL_INLINE void DL_NAME(softmax_)(DL_NAME(soft) *x, float *s, int64_t ld, int n, float c, int first, const int nv) {
	const vf vc = vset1(c);
	vf top[MUL_VECS], sum[MUL_VECS], shift[MUL_VECS];
#pragma GCC unroll 3
	for (int v = 0; v < nv; v++) top[v] = first ? vload(s + v * VL) : x->top[v];
	for (int j = 0; j < n; j++)
#pragma GCC unroll 3
		for (int v = 0; v < nv; v++) top[v] = vmax(vload(s + j * ld + v * VL), top[v]);
#pragma GCC unroll 3
	for (int v = 0; v < nv; v++) {
		shift[v] = vsub(vzero(), vmul(top[v], vc));
		x->scale[v] = DL_NAME(vexp2)(vfma(first ? top[v] : x->top[v], vc, shift[v]));
		x->top[v] = top[v];
		sum[v] = vzero();
	}
	for (int j = 0; j + 2 <= n; j += 2)
#pragma GCC unroll 3
		for (int v = 0; v < nv; v++) {
			const float *p = s + j * ld + v * VL;
			const vf a = DL_NAME(vexp2)(vfma(vload(p), vc, shift[v])), b = DL_NAME(vexp2)(vfma(vload(p + ld), vc, shift[v]));
			sum[v] = vadd(sum[v], vadd(a, b));
			DL_NAME(put_pair)(s + j / PER * ld + v * VL, ld, a, b);
		}
	if (n % 2)
		for (int v = 0; v < nv; v++) {
			const vf a = DL_NAME(vexp2)(vfma(vload(s + (n - 1) * ld + v * VL), vc, shift[v]));
			sum[v] = vadd(sum[v], a);
			DL_NAME(put_pair)(s + (n - 1) / PER * ld + v * VL, PER == 2 ? 0 : ld, a, vzero());
		}
	for (int v = 0; v < nv; v++) x->sum[v] = first ? sum[v] : vfma(x->sum[v], x->scale[v], sum[v]);
}
static void DL_NAME(softmax)(DL_NAME(soft) *x, float *s, int64_t ld, int n, int nv, float c, int first) {
	BY_WIDTH(nv, DL_NAME(softmax_), x, s, ld, n, c, first);
}

// grad turns rows of scores s and of do·v g, n keys (even), into
// p = 2^(c*s - lse) and ds = p*(g - delta): pn and dn by row, ldn elements
// apart, and ds once more in pairs of keys, di, where words are pairs.
DL_INLINE void DL_NAME(grad_)(el *pn, el *dn, int64_t ldn, float *di, int64_t ldi, const float *s, const float *g, int64_t ld, int n, float c,
                              const float *lse, const float *delta, const int nv) {
	const vf vc = vset1(c);
	vf l[MUL_VECS], e[MUL_VECS];
#pragma GCC unroll 3
	for (int v = 0; v < nv; v++) {
		l[v] = vsub(vzero(), vload(lse + v * VL));
		e[v] = vload(delta + v * VL);
	}
	for (int j = 0; j < n; j += 2)
#pragma GCC unroll 3
		for (int v = 0; v < nv; v++) {
			const float *ps = s + j * ld + v * VL, *pg = g + j * ld + v * VL;
			const vf p0 = DL_NAME(vexp2)(vfma(vload(ps), vc, l[v])), p1 = DL_NAME(vexp2)(vfma(vload(ps + ld), vc, l[v]));
			const vf d0 = vmul(p0, vsub(vload(pg), e[v])), d1 = vmul(p1, vsub(vload(pg + ld), e[v]));
			el *pp = pn + j * ldn + v * VL, *pd = dn + j * ldn + v * VL;
#if DL_PAIR
			const __m512i hp = (__m512i)_mm512_cvtne2ps_pbh(p1, p0), hd = (__m512i)_mm512_cvtne2ps_pbh(d1, d0);
			const __m512i order = _mm512_set_epi16(31, 15, 30, 14, 29, 13, 28, 12, 27, 11, 26, 10, 25, 9, 24, 8, 23, 7, 22, 6, 21, 5, 20, 4,
			                                       19, 3, 18, 2, 17, 1, 16, 0);
			_mm256_storeu_si256((__m256i *)pp, _mm512_castsi512_si256(hp));
			_mm256_storeu_si256((__m256i *)(pp + ldn), _mm512_extracti64x4_epi64(hp, 1));
			_mm256_storeu_si256((__m256i *)pd, _mm512_castsi512_si256(hd));
			_mm256_storeu_si256((__m256i *)(pd + ldn), _mm512_extracti64x4_epi64(hd, 1));
			vstore(di + j / 2 * ldi + v * VL, (vf)_mm512_permutexvar_epi16(order, hd));
#else
			(void)di;
			(void)ldi;
			vstore(pp, p0);
			vstore(pp + ldn, p1);
			vstore(pd, d0);
			vstore(pd + ldn, d1);
#endif
		}
}
static void DL_NAME(grad)(el *pn, el *dn, int64_t ldn, float *di, int64_t ldi, const float *s, const float *g, int64_t ld, int n, int nv, float c,
                          const float *lse, const float *delta) {
	BY_WIDTH(nv, DL_NAME(grad_), pn, dn, ldn, di, ldi, s, g, ld, n, c, lse, delta);
}
