// The small products inside attention: operands that lie in this thread's
// cache, padded with zeros to whole register tiles of MUL_ROWS rows and up to
// MUL_VECS vectors.
#if defined(DL_VEC_PORTABLE)
enum { MUL_ROWS = 4, MUL_VECS = 1 };
#elif VL == 16
enum { MUL_ROWS = 8, MUL_VECS = 3 };
#else
enum { MUL_ROWS = 4, MUL_VECS = 3 };
#endif

// A left operand a(i, k) = p[i*row + k*col].
typedef struct {
	const float *p;
	int64_t row, col;
} DL_NAME(left);

DL_INLINE void DL_NAME(mul_tile)(float *c, int64_t ldc, DL_NAME(left) a, const float *b, int64_t ldb, int depth, int add, const int nv) {
	vf s[MUL_ROWS][MUL_VECS];
#pragma GCC unroll 8
	for (int i = 0; i < MUL_ROWS; i++)
#pragma GCC unroll 3
		for (int j = 0; j < nv; j++) s[i][j] = add ? vload(c + i * ldc + j * VL) : vzero();
	for (int k = 0; k < depth; k++) {
		vf r[MUL_VECS];
#pragma GCC unroll 3
		for (int j = 0; j < nv; j++) r[j] = vload(b + j * VL);
#pragma GCC unroll 8
		for (int i = 0; i < MUL_ROWS; i++) {
			vf l = vset1(a.p[i * a.row]);
#pragma GCC unroll 3
			for (int j = 0; j < nv; j++) s[i][j] = vfma(l, r[j], s[i][j]);
		}
		a.p += a.col;
		b += ldb;
	}
#pragma GCC unroll 8
	for (int i = 0; i < MUL_ROWS; i++)
#pragma GCC unroll 3
		for (int j = 0; j < nv; j++) vstore(c + i * ldc + j * VL, s[i][j]);
}

// mul: c[m][nv vectors] (+)= a[m][depth] · b[depth][nv vectors]; m is a
// multiple of MUL_ROWS.
static void DL_NAME(mul)(float *c, int64_t ldc, DL_NAME(left) a, const float *b, int64_t ldb, int m, int nv, int depth, int add) {
	for (int parts = (nv + MUL_VECS - 1) / MUL_VECS; parts > 0; parts--) {
		const int w = (nv + parts - 1) / parts; // parts of nearly equal width
		for (int i = 0; i < m; i += MUL_ROWS) {
			DL_NAME(left) ai = {a.p + i * a.row, a.row, a.col};
			float *ci = c + i * ldc;
			if (w == 1) DL_NAME(mul_tile)(ci, ldc, ai, b, ldb, depth, add, 1);
#if !defined(DL_VEC_PORTABLE)
			else if (w == 2) DL_NAME(mul_tile)(ci, ldc, ai, b, ldb, depth, add, 2);
			else DL_NAME(mul_tile)(ci, ldc, ai, b, ldb, depth, add, 3);
#endif
		}
		c += w * VL;
		b += w * VL;
		nv -= w;
	}
}

// flip: dst[kp][ld] = src[tp][kp] transposed; tp and kp are multiples of VL.
static void DL_NAME(flip)(float *dst, int64_t ld, const float *src, int tp, int kp) {
	for (int t = 0; t < tp; t += VL)
		for (int c = 0; c < kp; c += VL) {
			vf r[VL];
			for (int i = 0; i < VL; i++) r[i] = vload(src + (int64_t)(t + i) * kp + c);
			transpose_(r);
			for (int i = 0; i < VL; i++) vstore(dst + (int64_t)(c + i) * ld + t, r[i]);
		}
}
