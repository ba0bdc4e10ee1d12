// Packing and products on AMX tiles for one head of attention. Included by
// vec_attn_tile.c alone.
//
// A tile is 1 KB: 16 rows of 16 pairs of bf16. On the right side of a product
// row r holds, for 16 columns, the elements 2r and 2r+1 along the depth; on the
// left side it holds 32 elements along the depth of row r. Tile registers: 0
// to 3 sums (2x2), 4 and 5 left, 6 and 7 right.
enum { TILE = 1024, ROWS = 32, GROUP = 128 };
#define LOG2E 1.44269504f

// Positions and head elements padded to whole tiles (tp and kd: multiples of
// 32); ld and ldp between rows of scores and probabilities, off powers of two.
typedef struct {
	int tp, kd;
	int64_t ld, ldp, rows_bytes;
} sizes;

static sizes sizes_of(const dl_attn_args *a) {
	sizes z = {(a->t + 31) / 32 * 32, (a->k + 31) / 32 * 32, 0, 0, 0};
	z.ld = z.tp + 16;
	z.ldp = z.tp + (z.tp % 128 == 0 ? 32 : 0);
	z.rows_bytes = (int64_t)z.tp * z.kd * 2;
	return z;
}

// take cuts n bytes, a multiple of 64, off scratch memory.
DL_INLINE void *take(char **mem, int64_t n) {
	void *p = *mem;
	*mem += n;
	return p;
}

// exp2_: 2^x for x <= about 0, relative error 4e-6 (the result becomes a bf16);
// 0 below 2^-100, so that nothing becomes subnormal. NaN stays NaN. The
// polynomial meets 2^r at the five Chebyshev nodes of [-1/2, 1/2].
DL_INLINE vf exp2_(vf x) {
	vf n = _mm512_roundscale_ps(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
	vf r = vsub(x, n);
	vf p = vset1(0.009666368515387469f);
	p = vfma(p, r, vset1(0.055921975842256264f));
	p = vfma(p, r, vset1(0.24022349038020335f));
	p = vfma(p, r, vset1(0.693121045203427f));
	p = vfma(p, r, vset1(1.0f));
	return _mm512_maskz_scalef_ps(_mm512_cmp_ps_mask(x, vset1(-100.0f), _CMP_NLT_UQ), p, n);
}

// log_ of normal positive x, absolute error 3e-7 for x near 1 and relative
// elsewhere: exponent*ln 2 + 2 atanh((m-1)/(m+1)) for m in [3/4, 3/2).
DL_INLINE vf log_(vf x) {
	vf m = _mm512_getmant_ps(x, _MM_MANT_NORM_p75_1p5, _MM_MANT_SIGN_src), e = _mm512_getexp_ps(_mm512_div_ps(x, m));
	vf s = vdiv(vsub(m, vset1(1)), vadd(m, vset1(1))), q = vmul(s, s);
	vf p = vfma(q, vfma(q, vfma(q, vset1(2.0f / 9), vset1(2.0f / 7)), vset1(2.0f / 5)), vset1(2.0f / 3));
	return vfma(e, vset1(0.693147181f), vfma(vmul(p, q), s, vadd(s, s)));
}

// narrow_n stores the first n elements as bf16.
DL_INLINE void narrow_n(uint16_t *p, vf v, int n) { _mm256_mask_storeu_epi16(p, vmask_(n), (__m256i)_mm512_cvtneps_pbh(v)); }

// rows_in copies t rows of k activations, stride apart, into dst[tp][kd] with
// zeros around, rotated where asked.
static void rows_in(uint16_t *dst, const sizes *z, const uint16_t *src, int64_t stride, const dl_attn_args *a, int rotate) {
	const int k = a->k, half = k / 2;
	for (int t = 0; t < a->t; t++, src += stride, dst += z->kd) {
		dl_prefetch_row(src, stride * 2, k * 2);
		for (int i = k / VL * VL; i < z->kd; i += VL) _mm256_storeu_si256((__m256i *)(dst + i), _mm256_setzero_si256());
		if (!rotate || !a->cos) {
			for (int i = 0; i < k; i += VL) {
				__mmask16 m = vmask_(k - i < VL ? k - i : VL);
				_mm256_mask_storeu_epi16(dst + i, m, _mm256_maskz_loadu_epi16(m, src + i));
			}
			continue;
		}
		const float *cos = a->cos + (int64_t)t * half, *sin = a->sin + (int64_t)t * half;
		for (int i = 0; i < half; i += VL) {
			const int n = half - i < VL ? half - i : VL;
			vf x = vloadh_n(src + i, n), y = vloadh_n(src + half + i, n), c = vload_n(cos + i, n), s = vload_n(sin + i, n);
			narrow_n(dst + i, vsub(vmul(x, c), vmul(y, s)), n);
			narrow_n(dst + half + i, vfma(y, c, vmul(x, s)), n);
		}
	}
	memset(dst, 0, (size_t)(z->tp - a->t) * (size_t)z->kd * 2);
}

// rows_out rounds n rows of src[][kd], positions t0 on, into dst, rotated
// backwards where asked, times scale.
static void rows_out(uint16_t *dst, int64_t stride, const float *src, int kd, int t0, int n, const dl_attn_args *a, int rotate, float scale) {
	const int k = a->k, half = k / 2;
	const vf sc = vset1(scale);
	for (int t = t0; t < t0 + n; t++, dst += stride, src += kd) {
		if (!rotate || !a->cos) {
			for (int i = 0; i < k; i += VL) narrow_n(dst + i, vmul(vload(src + i), sc), k - i < VL ? k - i : VL);
			continue;
		}
		const float *cos = a->cos + (int64_t)t * half, *sin = a->sin + (int64_t)t * half;
		for (int i = 0; i < half; i += VL) {
			const int m = half - i < VL ? half - i : VL;
			vf x = vmul(vload_n(src + i, m), sc), y = vmul(vload_n(src + half + i, m), sc), c = vload_n(cos + i, m), s = vload_n(sin + i, m);
			narrow_n(dst + i, vfma(x, c, vmul(y, s)), m);
			narrow_n(dst + half + i, vsub(vmul(y, c), vmul(x, s)), m);
		}
	}
}

DL_INLINE void transpose_to(char *dst, vf r[16]) {
	transpose_(r);
	for (int i = 0; i < 16; i++) vstore((float *)(dst + 64 * i), r[i]);
}

// flip_pairs: src[tp][kd] as a right side whose columns are positions and whose
// depth is the head: tiles [tp/16][kd/32].
static void flip_pairs(char *dst, const sizes *z, const uint16_t *src) {
	for (int t = 0; t < z->tp; t += 16)
		for (int c = 0; c < z->kd; c += 32, dst += TILE) {
			vf r[16];
			for (int i = 0; i < 16; i++) r[i] = vload((const float *)(src + (int64_t)(t + i) * z->kd + c));
			transpose_to(dst, r);
		}
}

// pair_rows puts 16 elements of two rows side by side, pair by pair.
DL_INLINE __m512i pair_rows(const uint16_t *a, const uint16_t *b) {
	__m512i lo = _mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i *)a)), hi = _mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i *)b));
	return _mm512_or_si512(lo, _mm512_slli_epi32(hi, 16));
}

// interleave: src[tp][kd] as a right side whose columns are the head and whose
// depth is positions: tiles [kd/16][tp/32].
static void interleave(char *dst, const sizes *z, const uint16_t *src) {
	for (int c = 0; c < z->kd; c += 16)
		for (int t = 0; t < z->tp; t += 32, dst += TILE)
			for (int r = 0; r < 16; r++) {
				const uint16_t *row = src + (int64_t)(t + 2 * r) * z->kd + c;
				_mm512_storeu_si512(dst + 64 * r, pair_rows(row, row + z->kd));
			}
}

// left_columns: src[tp][kd] transposed as a left side whose rows are the head
// and whose depth is positions: tiles [kd/16][tp/32].
static void left_columns(char *dst, const sizes *z, const uint16_t *src) {
	for (int c = 0; c < z->kd; c += 16)
		for (int t = 0; t < z->tp; t += 32, dst += TILE) {
			vf r[16];
			for (int i = 0; i < 16; i++) {
				const uint16_t *row = src + (int64_t)(t + 2 * i) * z->kd + c;
				r[i] = _mm512_castsi512_ps(pair_rows(row, row + z->kd));
			}
			transpose_to(dst, r);
		}
}

// flip_sums: dst[tp][kd] from its transpose in tiles of 16x16 floats, [kd/16][tp/16].
static void flip_sums(float *dst, const float *src, const sizes *z) {
	for (int c = 0; c < z->kd; c += 16)
		for (int t = 0; t < z->tp; t += 16, src += TILE / 4) {
			vf r[16];
			for (int i = 0; i < 16; i++) r[i] = vload(src + 16 * i);
			transpose_(r);
			for (int i = 0; i < 16; i++) vstore(dst + (int64_t)(t + i) * z->kd + c, r[i]);
		}
}

// STEP_2X2 adds to the four sums; left tiles have lrow bytes between rows and
// lie lnext apart, right tiles likewise.
#define STEP_2X2(left, lrow, lnext, right, rrow, rnext) \
	do {                                                \
		_tile_loadd(6, (right), (rrow));                \
		_tile_loadd(4, (left), (lrow));                 \
		_tile_dpbf16ps(0, 4, 6);                        \
		_tile_loadd(7, (right) + (rnext), (rrow));      \
		_tile_dpbf16ps(1, 4, 7);                        \
		_tile_loadd(5, (left) + (lnext), (lrow));       \
		_tile_dpbf16ps(2, 5, 6);                        \
		_tile_dpbf16ps(3, 5, 7);                        \
	} while (0)

DL_INLINE void sums_zero(void) {
	_tile_zero(0);
	_tile_zero(1);
	_tile_zero(2);
	_tile_zero(3);
}

DL_INLINE void sums_store(float *c, int64_t ld) {
	_tile_stored(0, c, ld * 4);
	_tile_stored(1, c + 16, ld * 4);
	_tile_stored(2, c + 16 * ld, ld * 4);
	_tile_stored(3, c + 16 * ld + 16, ld * 4);
}

// scores: s[ROWS][cols] = left[ROWS][kd] times right, tiles [cols/16][kd/32].
static void scores(float *s, const sizes *z, const uint16_t *left, const char *right, int cols) {
	const int depth = z->kd / 32;
	const int64_t lrow = (int64_t)z->kd * 2;
	for (int j = 0; j < cols; j += 32, right += 2 * depth * TILE) {
		sums_zero();
		for (int c = 0; c < depth; c++) STEP_2X2((const char *)left + 64 * c, lrow, 16 * lrow, right + c * TILE, 64, depth * TILE);
		sums_store(s + j, z->ld);
	}
}

// rows_times: y[ROWS][kd] = p[ROWS][seen] times right, tiles [kd/16][tp/32].
static void rows_times(float *y, const sizes *z, const uint16_t *p, const char *right, int seen) {
	const int64_t lrow = z->ldp * 2, column = (int64_t)z->tp / 32 * TILE;
	for (int c = 0; c < z->kd; c += 32, right += 2 * column) {
		sums_zero();
		for (int j = 0; j < seen / 32; j++) STEP_2X2((const char *)p + 64 * j, lrow, 16 * lrow, right + j * TILE, 64, column);
		sums_store(y + c, z->kd);
	}
}

// columns_times adds left · right over the queries of one group to sums, tiles
// [kd/16][tp/16] of floats: left tiles [kd/16][tp/32] from tile first on, right
// pairs of queries [blocks*16][ld].
static void columns_times(float *sums, const sizes *z, const char *left, const char *right, int first, int blocks, int cols) {
	const int64_t lnext = (int64_t)z->tp / 32 * TILE, snext = (int64_t)z->tp / 16 * (TILE / 4), rrow = z->ld * 4;
	for (int j = 0; j < cols; j += 32)
		for (int c = 0; c < z->kd; c += 32) {
			float *upper = sums + c / 16 * snext + j / 16 * (TILE / 4), *lower = upper + snext;
			const char *l = left + c / 16 * lnext + (int64_t)first * TILE, *r = right + 4 * j;
			_tile_loadd(0, upper, 64);
			_tile_loadd(1, upper + TILE / 4, 64);
			_tile_loadd(2, lower, 64);
			_tile_loadd(3, lower + TILE / 4, 64);
			for (int b = 0; b < blocks; b++) STEP_2X2(l + b * TILE, 64, lnext, r + 16 * b * rrow, rrow, 64);
			_tile_stored(0, upper, 64);
			_tile_stored(1, upper + TILE / 4, 64);
			_tile_stored(2, lower, 64);
			_tile_stored(3, lower + TILE / 4, 64);
		}
}
