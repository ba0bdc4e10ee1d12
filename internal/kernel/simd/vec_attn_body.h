// Attention, one chunk for each (batch, head). A block of queries at a time:
// scores against all keys, exact softmax, product with v. Everything is float
// in this thread's scratch; the T x T matrix of one head exists a block of
// rows at a time only.

#ifndef DL_ATTN_SIZES
#define DL_ATTN_SIZES
// Padded sizes: tp positions, kp head elements, ld between rows of scores (off
// powers of two, which would share cache sets), qb queries in a block.
typedef struct {
	int tp, kp, qb;
	int64_t ld;
} dl_attn_sizes;

static inline int dl_up(int x, int m) { return (x + m - 1) / m * m; }

static inline dl_attn_sizes dl_attn_sizes_of(const dl_attn_args *a, int vl) {
	enum { BLOCK = 24576 }; // floats of scores in a block
	dl_attn_sizes s;
	s.tp = dl_up(a->t, 16);
	s.kp = dl_up(a->k, vl);
	s.ld = s.tp + (s.tp % 64 == 0 ? 16 : 0);
	s.qb = (int)(BLOCK / s.ld) / 8 * 8;
	if (s.qb < 16) s.qb = 16;
	if (s.qb > 256) s.qb = 256;
	if (s.qb > s.tp) s.qb = s.tp;
	return s;
}
#endif

// rows_in widens t rows of k activations, stride apart, into dst[tp][kp] with
// zeros around, rotated where cos is given, times scale.
static void ACT(rows_in)(float *dst, const dl_attn_sizes s, const act *src, int64_t stride, const dl_attn_args *a, int rotate, float scale) {
	const int k = a->k, half = k / 2;
	const vf sc = vset1(scale);
	for (int t = 0; t < a->t; t++, src += stride, dst += s.kp) {
		dl_prefetch_row(src, stride * (int64_t)sizeof *src, k * (int)sizeof *src);
		if (rotate && a->cos) {
			const float *cos = a->cos + (int64_t)t * half, *sin = a->sin + (int64_t)t * half;
			ROW_LOOP(half, i, n) {
				vf x = vmul(AK(src + i, n), sc), y = vmul(AK(src + half + i, n), sc);
				vf c = LOADK(cos + i, n), d = LOADK(sin + i, n);
				STOREK(dst + i, vsub(vmul(x, c), vmul(y, d)), n);
				STOREK(dst + half + i, vfma(y, c, vmul(x, d)), n);
			}
		} else {
			ROW_LOOP(k, i, n) { STOREK(dst + i, vmul(AK(src + i, n), sc), n); }
		}
		for (int i = k; i < s.kp; i++) dst[i] = 0;
	}
	memset(dst, 0, (size_t)(s.tp - a->t) * (size_t)s.kp * sizeof(float));
}

// rows_out is the way back for rows [t0, t1) of src, rotated backwards.
static void ACT(rows_out)(act *dst, int64_t stride, const float *src, const dl_attn_sizes s, int t0, int t1, const dl_attn_args *a, int rotate, float scale) {
	const int k = a->k, half = k / 2;
	const vf sc = vset1(scale);
	dst += t0 * stride;
	for (int t = t0; t < t1; t++, dst += stride, src += s.kp) {
		if (rotate && a->cos) {
			const float *cos = a->cos + (int64_t)t * half, *sin = a->sin + (int64_t)t * half;
			ROW_LOOP(half, i, n) {
				vf x = vmul(LOADK(src + i, n), sc), y = vmul(LOADK(src + half + i, n), sc);
				vf c = LOADK(cos + i, n), d = LOADK(sin + i, n);
				SK(dst + i, vfma(x, c, vmul(y, d)), n);
				SK(dst + half + i, vsub(vmul(y, c), vmul(x, d)), n);
			}
		} else {
			ROW_LOOP(k, i, n) { SK(dst + i, vmul(LOADK(src + i, n), sc), n); }
		}
	}
}

#ifndef DL_ATTN_EXP
#define DL_ATTN_EXP
// e^x with 0 below e^-80, so that no product becomes subnormal; NaN stays.
DL_INLINE vf DL_NAME(pexp)(vf x) { return vsel_gt(vset1(-80.0f), x, vzero(), vexp(x)); }

// softmax_row turns n scores into e^(s-max), zeros up to end, and returns the
// sum.
static float DL_NAME(softmax_row)(float *s, int n, int end, float *top) {
	vf m = vset1(-INFINITY);
	int j = 0;
	for (; j + VL <= n; j += VL) m = vmax(vload(s + j), m);
	float max = vmaxall(m);
	for (; j < n; j++) max = s[j] > max ? s[j] : max;
	const vf vm = vset1(max);
	vf sum = vzero();
	for (j = 0; j + VL <= n; j += VL) {
		vf e = DL_NAME(pexp)(vsub(vload(s + j), vm));
		sum = vadd(sum, e);
		vstore(s + j, e);
	}
	if (j < n) { // the rest of this vector becomes zero
		float tail[VL] = {0};
		vstore(s + j, DL_NAME(pexp)(vsub(vload(s + j), vm)));
		memcpy(tail, s + j, (size_t)(n - j) * sizeof(float));
		vf e = vload(tail);
		sum = vadd(sum, e);
		vstore(s + j, e);
		j += VL;
	}
	for (; j < end; j += VL) vstore(s + j, vzero());
	*top = max;
	return vsum(sum);
}

// grad_row turns n scores into probabilities p and dp into p*(dp - delta),
// zeros up to end.
static void DL_NAME(grad_row)(float *s, float *dp, int n, int end, float lse, float delta) {
	const vf l = vset1(lse), d = vset1(delta);
	int j = 0;
	for (; j < n; j += VL) {
		vf p = DL_NAME(pexp)(vsub(vload(s + j), l));
		vstore(s + j, p);
		vstore(dp + j, vmul(p, vsub(vload(dp + j), d)));
	}
	for (int i = n; i < j; i++) s[i] = dp[i] = 0;
	for (; j < end; j += VL) {
		vstore(s + j, vzero());
		vstore(dp + j, vzero());
	}
}
#endif

static void ACT(attn_chunk)(void *arg, int chunk, int thread) {
	const dl_attn_args *a = arg;
	const dl_attn_sizes s = dl_attn_sizes_of(a, VL);
	const int b = chunk / a->n, h = chunk % a->n, t = a->t, k = a->k;
	const int64_t width = (int64_t)a->n * k, all = (int64_t)s.tp * s.kp;
	float *q = dl_scratch(a->pool, thread, (size_t)(3 * all + s.kp * s.ld + s.qb * (s.ld + s.kp)) * sizeof(float));
	float *kr = q + all, *v = kr + all, *kt = v + all, *p = kt + s.kp * s.ld, *y = p + s.qb * s.ld;
	const act *qkv = (const act *)a->qkv + (int64_t)b * t * 3 * width + (int64_t)h * k;
	ACT(rows_in)(q, s, qkv, 3 * width, a, 1, 1.0f / sqrtf((float)k));
	ACT(rows_in)(kr, s, qkv + width, 3 * width, a, 1, 1);
	ACT(rows_in)(v, s, qkv + 2 * width, 3 * width, a, 0, 1);
	DL_NAME(flip)(kt, s.ld, kr, s.tp, s.kp);
	act *o = (act *)a->o + (int64_t)b * a->asking * width + (int64_t)h * k;
	for (int i0 = 0; i0 < a->asking; i0 += s.qb) {
		const int m = s.tp - i0 < s.qb ? s.tp - i0 : s.qb;
		const int seen = a->causal && i0 + m < t ? i0 + m : t, nv = (seen + VL - 1) / VL;
		DL_NAME(mul)(p, s.ld, (DL_NAME(left)){q + (int64_t)i0 * s.kp, s.kp, 1}, kt, s.ld, m, nv, k, 0);
		float inverse[256]; // one for each query of a block
		for (int i = 0; i < m && i0 + i < a->asking; i++) {
			float top, sum = DL_NAME(softmax_row)(p + i * s.ld, a->causal ? i0 + i + 1 : t, nv * VL, &top);
			if (a->lse) a->lse[(int64_t)chunk * a->asking + i0 + i] = top + logf(sum);
			inverse[i] = 1.0f / sum;
		}
		DL_NAME(mul)(y, s.kp, (DL_NAME(left)){p, s.ld, 1}, v, s.kp, m, s.kp / VL, seen, 0);
		for (int i = 0; i < m && i0 + i < a->asking; i++) {
			const vf w = vset1(inverse[i]);
			act *oi = o + (i0 + i) * width;
			const float *yi = y + (int64_t)i * s.kp;
			ROW_LOOP(k, c, n) { SK(oi + c, vmul(LOADK(yi + c, n), w), n); }
		}
	}
}

void ACT(dl_attn)(dl_pool *p, const dl_attn_args *a) { dl_parallel(p, a->b * a->n, ACT(attn_chunk), (void *)a); }

// Backward. With q scaled by 1/sqrt(K), p = e^(qk - lse) and
// ds = p*(do·v - do·o):  dv = pᵀ do,  dk = dsᵀ q,  dq = ds k / sqrt(K).
static void ACT(attn_back_chunk)(void *arg, int chunk, int thread) {
	const dl_attn_args *a = arg;
	const dl_attn_sizes s = dl_attn_sizes_of(a, VL);
	const int b = chunk / a->n, h = chunk % a->n, t = a->t, k = a->k;
	const int64_t width = (int64_t)a->n * k, all = (int64_t)s.tp * s.kp;
	const float scale = 1.0f / sqrtf((float)k);
	float *q = dl_scratch(a->pool, thread, (size_t)(6 * all + 2 * s.kp * s.ld + s.qb * (2 * s.ld + s.kp)) * sizeof(float));
	float *kr = q + all, *v = kr + all, *dy = v + all, *dk = dy + all, *dv = dk + all;
	float *kt = dv + all, *vt = kt + s.kp * s.ld, *p = vt + s.kp * s.ld, *dp = p + s.qb * s.ld, *dq = dp + s.qb * s.ld;
	const act *qkv = (const act *)a->qkv + (int64_t)b * t * 3 * width + (int64_t)h * k;
	const act *o = (const act *)a->o + (int64_t)b * t * width + (int64_t)h * k;
	act *dqkv = (act *)a->dqkv + (int64_t)b * t * 3 * width + (int64_t)h * k;
	ACT(rows_in)(q, s, qkv, 3 * width, a, 1, scale);
	ACT(rows_in)(kr, s, qkv + width, 3 * width, a, 1, 1);
	ACT(rows_in)(v, s, qkv + 2 * width, 3 * width, a, 0, 1);
	ACT(rows_in)(dy, s, (const act *)a->d_o + (int64_t)b * t * width + (int64_t)h * k, width, a, 0, 1);
	DL_NAME(flip)(kt, s.ld, kr, s.tp, s.kp);
	DL_NAME(flip)(vt, s.ld, v, s.tp, s.kp);
	memset(dk, 0, (size_t)(2 * all) * sizeof(float));
	const float *lse = a->lse + (int64_t)chunk * t;
	for (int i0 = 0; i0 < t; i0 += s.qb) {
		const int m = s.tp - i0 < s.qb ? s.tp - i0 : s.qb;
		const int seen = a->causal && i0 + m < t ? i0 + m : t, nv = (seen + VL - 1) / VL;
		const float *qi = q + (int64_t)i0 * s.kp, *dyi = dy + (int64_t)i0 * s.kp;
		DL_NAME(mul)(p, s.ld, (DL_NAME(left)){qi, s.kp, 1}, kt, s.ld, m, nv, k, 0);
		DL_NAME(mul)(dp, s.ld, (DL_NAME(left)){dyi, s.kp, 1}, vt, s.ld, m, nv, k, 0);
		for (int i = 0; i < m; i++) {
			float delta = 0, l = 0;
			int n = 0; // rows of padding see nothing
			if (i0 + i < t) {
				const act *oi = o + (i0 + i) * width;
				dl_prefetch_row(oi, width * (int64_t)sizeof *oi, k * (int)sizeof *oi);
				const float *di = dyi + (int64_t)i * s.kp;
				vf sum = vzero();
				ROW_LOOP(k, c, w) { sum = vfma(AK(oi + c, w), LOADK(di + c, w), sum); }
				delta = vsum(sum);
				l = lse[i0 + i];
				n = a->causal ? i0 + i + 1 : t;
			}
			DL_NAME(grad_row)(p + i * s.ld, dp + i * s.ld, n, nv * VL, l, delta);
		}
		const int rows = dl_up(seen, MUL_ROWS);
		DL_NAME(mul)(dv, s.kp, (DL_NAME(left)){p, 1, s.ld}, dyi, s.kp, rows, s.kp / VL, m, 1);
		DL_NAME(mul)(dk, s.kp, (DL_NAME(left)){dp, 1, s.ld}, qi, s.kp, rows, s.kp / VL, m, 1);
		DL_NAME(mul)(dq, s.kp, (DL_NAME(left)){dp, s.ld, 1}, kr, s.kp, m, s.kp / VL, seen, 0);
		ACT(rows_out)(dqkv, 3 * width, dq, s, i0, i0 + m < t ? i0 + m : t, a, 1, scale);
	}
	ACT(rows_out)(dqkv + width, 3 * width, dk, s, 0, t, a, 1, 1);
	ACT(rows_out)(dqkv + 2 * width, 3 * width, dv, s, 0, t, a, 0, 1);
}

void ACT(dl_attn_back)(dl_pool *p, const dl_attn_args *a) { dl_parallel(p, a->b * a->n, ACT(attn_back_chunk), (void *)a); }
