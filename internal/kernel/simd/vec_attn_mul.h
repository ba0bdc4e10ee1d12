// The arithmetic inside attention, for one kind of product: register tiles, a
// transpose, 2^x. Operands lie in this thread's cache, padded with zeros to
// whole register tiles of MUL_ROWS rows and up to MUL_VECS vectors.
//
// A word is what one multiply-add takes from each side: a float, or with
// DL_PAIR two bf16 that follow each other along the depth. PER is the number of
// elements in a word. Words travel as float. ELS stores the first n elements,
// COPY takes them from activations.
#if DL_PAIR
#define el uint16_t
#define vmadd(a, b, c) _mm512_dpbf16_ps(c, (__m512bh)(a), (__m512bh)(b))
#define ELS(p, v, n)                                                                                                \
	do {                                                                                                            \
		const __m256i e_ = (__m256i)_mm512_cvtneps_pbh(v);                                                          \
		if ((n) == VL) _mm256_storeu_si256((__m256i *)(p), e_);                                                     \
		else _mm256_mask_storeu_epi16(p, vmask_((int)(n)), e_);                                                     \
	} while (0)
#define COPY(p, from, n)                                                                                            \
	do {                                                                                                            \
		if ((n) == VL) _mm256_storeu_si256((__m256i *)(p), _mm256_loadu_si256((const __m256i *)(from)));            \
		else _mm256_mask_storeu_epi16(p, vmask_((int)(n)), _mm256_maskz_loadu_epi16(vmask_((int)(n)), from));       \
	} while (0)
#else
#define el float
#define vmadd(a, b, c) vfma(a, b, c)
#define ELS(p, v, n) STOREK(p, v, n)
#define COPY(p, from, n) STOREK(p, AK(from, n), n)
#endif
enum { PER = DL_PAIR ? 2 : 1 };

#if defined(DL_VEC_PORTABLE)
enum { MUL_ROWS = 4, MUL_VECS = 1 };
#elif VL == 16
enum { MUL_ROWS = 8, MUL_VECS = 3 };
#else
enum { MUL_ROWS = 4, MUL_VECS = 3 };
#endif

// A left operand: word (i, d) = p[i*row + d*col].
typedef struct {
	const float *p;
	int64_t row, col;
} DL_NAME(left);

// BY_WIDTH calls f with a constant number of vectors, 1 to MUL_VECS.
#if defined(DL_VEC_PORTABLE)
#define BY_WIDTH(nv, f, ...) ((void)(nv), f(__VA_ARGS__, 1))
#else
#define BY_WIDTH(nv, f, ...)                    \
	do {                                        \
		if ((nv) == 1) f(__VA_ARGS__, 1);       \
		else if ((nv) == 2) f(__VA_ARGS__, 2);  \
		else f(__VA_ARGS__, 3);                 \
	} while (0)
#endif

#if defined(DL_VEC_PORTABLE)
// The same, for compilers that cut vectors of 8 badly: 4 rows of two fours.
static inline void DL_NAME(mul_tile)(float *c, int64_t ldc, DL_NAME(left) a, const float *b, int64_t ldb, int depth, int add, const vf *scale, int rows, int nv) {
	typedef float four __attribute__((vector_size(16)));
	four s[4][2], r[2];
	(void)rows;
	(void)nv;
	for (int i = 0; i < 4; i++)
		for (int j = 0; j < 2; j++) {
			s[i][j] = (four){0};
			if (add) memcpy(&s[i][j], c + i * ldc + 4 * j, sizeof(four));
			if (scale) {
				memcpy(r, (const float *)scale + 4 * j, sizeof(four));
				s[i][j] *= r[0];
			}
		}
	for (int d = 0; d < depth; d++) {
		memcpy(r, b, sizeof r);
#pragma GCC unroll 4
		for (int i = 0; i < 4; i++) {
			const float l = a.p[i * a.row];
			const four w = {l, l, l, l};
			s[i][0] += w * r[0];
			s[i][1] += w * r[1];
		}
		a.p += a.col;
		b += ldb;
	}
	for (int i = 0; i < 4; i++) memcpy(c + i * ldc, s[i], sizeof s[i]);
}
#else
DL_INLINE void DL_NAME(mul_tile)(float *c, int64_t ldc, DL_NAME(left) a, const float *b, int64_t ldb, int depth, int add, const vf *scale, const int rows, const int nv) {
	vf s[MUL_ROWS][MUL_VECS];
#pragma GCC unroll 8
	for (int i = 0; i < rows; i++)
#pragma GCC unroll 3
		for (int j = 0; j < nv; j++) s[i][j] = add ? vload(c + i * ldc + j * VL) : vzero();
	if (scale) {
#pragma GCC unroll 8
		for (int i = 0; i < rows; i++)
#pragma GCC unroll 3
			for (int j = 0; j < nv; j++) s[i][j] = vmul(s[i][j], scale[j]);
	}
	for (int d = 0; d < depth; d++) {
		vf r[MUL_VECS];
#pragma GCC unroll 3
		for (int j = 0; j < nv; j++) r[j] = vload(b + j * VL);
#pragma GCC unroll 8
		for (int i = 0; i < rows; i++) {
			vf l = vset1(a.p[i * a.row]);
#pragma GCC unroll 3
			for (int j = 0; j < nv; j++) s[i][j] = vmadd(l, r[j], s[i][j]);
		}
		a.p += a.col;
		b += ldb;
	}
#pragma GCC unroll 8
	for (int i = 0; i < rows; i++)
#pragma GCC unroll 3
		for (int j = 0; j < nv; j++) vstore(c + i * ldc + j * VL, s[i][j]);
}
#endif

// mul_half is mul_tile with the lower half of one vector; it clears the upper.
// (With vectors of 8, halves win nothing.)
#if defined(DL_VEC_PORTABLE) || VL < 16
enum { HALF = 0 };
#else
enum { HALF = VL / 2, HALF_ROWS = 8 };
#if DL_PAIR
#define hmadd(a, b, c) _mm256_dpbf16_ps(c, (__m256bh)(a), (__m256bh)(b))
#else
#define hmadd(a, b, c) _mm256_fmadd_ps(a, b, c)
#endif
DL_INLINE void DL_NAME(mul_half)(float *c, int64_t ldc, DL_NAME(left) a, const float *b, int64_t ldb, int depth, int add, const vf *scale, const int rows) {
	__m256 s[HALF_ROWS];
#pragma GCC unroll 8
	for (int i = 0; i < rows; i++) {
		s[i] = add ? _mm256_loadu_ps(c + i * ldc) : _mm256_setzero_ps();
		if (scale) s[i] = _mm256_mul_ps(s[i], _mm512_castps512_ps256(scale[0]));
	}
	for (int d = 0; d < depth; d++) {
		const __m256 r = _mm256_loadu_ps(b);
#pragma GCC unroll 8
		for (int i = 0; i < rows; i++) s[i] = hmadd(_mm256_set1_ps(a.p[i * a.row]), r, s[i]);
		a.p += a.col;
		b += ldb;
	}
#pragma GCC unroll 8
	for (int i = 0; i < rows; i++) vstore(c + i * ldc, _mm512_zextps256_ps512(s[i]));
}
#undef hmadd
#endif

// mul: c[m][nv vectors] = Σ_d a(·, d)·b[d][nv vectors], with add plus what c
// holds, times scale, a value for each column, where given. m is rounded up, to
// MUL_ROWS at most; nv is at most MUL_VECS, and 0 for the lower half of one
// vector, the upper half of which becomes zero.
static void DL_NAME(mul)(float *c, int64_t ldc, DL_NAME(left) a, const float *b, int64_t ldb, int m, int nv, int depth, int add, const vf *scale) {
	int i = 0;
#define LEFT ((DL_NAME(left)){a.p + i * a.row, a.row, a.col})
#define TILE(rows) BY_WIDTH(nv, DL_NAME(mul_tile), c + i * ldc, ldc, LEFT, b, ldb, depth, add, scale, rows)
#if defined(DL_VEC_PORTABLE)
	for (; i < m; i += 4) TILE(4);
#else
#if VL == 16
#define TILE_HALF(rows) DL_NAME(mul_half)(c + i * ldc, ldc, LEFT, b, ldb, depth, add, scale, rows)
	if (nv == 0) {
		for (; m - i >= HALF_ROWS; i += HALF_ROWS) TILE_HALF(HALF_ROWS);
		for (; m - i > 2; i += 4) TILE_HALF(4);
		for (; i < m; i += 2) TILE_HALF(2);
		return;
	}
#undef TILE_HALF
#endif
	for (; m - i >= MUL_ROWS; i += MUL_ROWS) TILE(MUL_ROWS);
	for (; MUL_ROWS > 4 && m - i > 2; i += 4) TILE(4);
	for (; i < m; i += 2) TILE(2);
#endif
#undef TILE
#undef LEFT
}

// next_width is the width in vectors of the first of the fewest blocks, nearly
// equal and at most MUL_VECS wide, that nv vectors are cut into.
DL_INLINE int DL_NAME(next_width)(int nv, int most) {
	const int parts = (nv + most - 1) / most;
	return (nv + parts - 1) / parts;
}

// half_width is the width in vectors of the next block of n lanes that are left:
// as next_width, but what fits into half a vector at the end is a block of its
// own.
DL_INLINE int DL_NAME(half_width)(int n) {
	const int rest = n % VL, alone = rest <= HALF && n > VL;
	return DL_NAME(next_width)(n / VL + (rest > 0 && !alone), MUL_VECS);
}

// mul_width is what mul wants to hear about a block of n lanes.
DL_INLINE int DL_NAME(mul_width)(int n, int vecs) { return n <= HALF ? 0 : vecs; }

// flip: dst[w][ld], VL columns of it, = VL rows of w words transposed.
DL_INLINE void DL_NAME(flip)(float *dst, int64_t ld, const float *src, int64_t lds, int w) {
	for (int c = 0; c < w; c += VL) {
		vf r[VL];
		for (int i = 0; i < VL; i++) r[i] = vload(src + i * lds + c);
		transpose_(r);
		for (int i = 0; i < VL && c + i < w; i++) vstore(dst + (c + i) * ld, r[i]);
	}
}

// vexp2: 2^x for x up to 127, 0 below 2^-100, so that no product becomes
// subnormal; NaN stays NaN. The polynomial meets 2^r at the Chebyshev nodes of
// [-1/2, 1/2]: relative error 4e-6 where the result becomes a bf16, else 2e-8
// before rounding.
DL_INLINE vf DL_NAME(vexp2)(vf x) {
#if VL == 16
	const vf n = _mm512_roundscale_ps(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC), r = vsub(x, n);
#else
	const vf magic = vset1(12582912.0f), t = vadd(x, magic), r = vsub(x, vsub(t, magic)); // 1.5*2^23
#endif
#if DL_PAIR
	vf p = vset1(0.00966636852f);
	p = vfma(p, r, vset1(0.0559219758f));
	p = vfma(p, r, vset1(0.24022349f));
	p = vfma(p, r, vset1(0.693121045f));
#else
	vf p = vset1(0.000154614447f);
	p = vfma(p, r, vset1(0.00134004282f));
	p = vfma(p, r, vset1(0.00961805668f));
	p = vfma(p, r, vset1(0.0555032723f));
	p = vfma(p, r, vset1(0.240226509f));
	p = vfma(p, r, vset1(0.693147207f));
#endif
	p = vfma(p, r, vset1(1));
#if VL == 16
	return _mm512_maskz_scalef_ps(_mm512_cmp_ps_mask(x, vset1(-100), _CMP_NLT_UQ), p, n);
#else
	return vsel_gt(vset1(-100), x, vzero(), vmul(p, vpow2_(t)));
#endif
}

// vlog: log x for normal positive x, error 1e-7 or two units of the last place.
// With x = 2^e m, m in [1/√2, √2): e ln 2 + 2 atanh((m-1)/(m+1)). NaN stays NaN.
DL_INLINE vf DL_NAME(vlog)(vf x) {
	typedef int32_t DL_NAME(vw_t) __attribute__((vector_size(4 * VL)));
	typedef float DL_NAME(vx_t) __attribute__((vector_size(4 * VL)));
	DL_NAME(vw_t) u = (DL_NAME(vw_t))x, e = (u - 0x3f3504f3) >> 23;
	vf m = (vf)(u - (e << 23)), s = vdiv(vsub(m, vset1(1)), vadd(m, vset1(1))), q = vmul(s, s);
	vf p = vfma(q, vfma(q, vfma(q, vset1(2.0f / 9), vset1(2.0f / 7)), vset1(2.0f / 5)), vset1(2.0f / 3));
	return vfma((vf)__builtin_convertvector(e, DL_NAME(vx_t)), vset1(0.693147181f), vadd(vfma(vmul(p, q), s, vadd(s, s)), vsub(x, x)));
}
