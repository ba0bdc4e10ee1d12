// Attention of bf16 activations on AMX tiles. Rotated q and k, the
// probabilities and their gradients are rounded to bf16 before a product; sums
// are float. One chunk for each (batch, head), a block of queries at a time
// against all keys, with an exact softmax. The plain loops are those of
// vec_attn_body.h and vec_attn_back_body.h.
#if defined(__x86_64__)
#include "vec.h"
#include <stddef.h>

#include "isa_amx.h"
#include "isa_vf512.h"
#include "transpose_avx.h"

#include "vec_attn_tile.h"

// softmax_row turns n scores into bf16 e^(scale*(s-max)), zeros up to end,
// and returns their sum (before rounding) and scale*max.
static float softmax_row(uint16_t *p, const float *s, int n, int end, float scale, float *top) {
	vf m = vset1(-INFINITY);
	int j = 0;
	for (; j + VL <= n; j += VL) m = vmax(vload(s + j), m);
	if (j < n) m = _mm512_mask_max_ps(m, vmask_(n - j), vload(s + j), m);
	*top = vmaxall(m) * scale;
	const vf c = vset1(scale * LOG2E), shift = vset1(-*top * LOG2E);
	vf sum = vzero();
	for (j = 0; j + VL <= n; j += VL) {
		vf e = exp2_(vfma(vload(s + j), c, shift));
		sum = vadd(sum, e);
		_mm256_storeu_si256((__m256i *)(p + j), (__m256i)_mm512_cvtneps_pbh(e));
	}
	if (j < n) {
		vf e = _mm512_maskz_mov_ps(vmask_(n - j), exp2_(vfma(vload(s + j), c, shift)));
		sum = vadd(sum, e);
		_mm256_storeu_si256((__m256i *)(p + j), (__m256i)_mm512_cvtneps_pbh(e));
		j += VL;
	}
	for (; j < end; j += VL) _mm256_storeu_si256((__m256i *)(p + j), _mm256_setzero_si256());
	return vsum(sum);
}

static void attn_chunk(void *arg, int chunk, int thread) {
	const dl_attn_args *a = arg;
	const sizes z = sizes_of(a);
	const int b = chunk / a->n, h = chunk % a->n, t = a->t, k = a->k;
	const int64_t width = (int64_t)a->n * k;
	const float scale = 1.0f / sqrtf((float)k);
	char *mem = dl_scratch(a->pool, thread, 5 * z.rows_bytes + ROWS * (z.ld * 4 + z.ldp * 2 + z.kd * 4));
	uint16_t *q = take(&mem, z.rows_bytes), *kr = take(&mem, z.rows_bytes), *v = take(&mem, z.rows_bytes);
	char *kt = take(&mem, z.rows_bytes), *vi = take(&mem, z.rows_bytes);
	float *s = take(&mem, ROWS * z.ld * 4), *y = take(&mem, ROWS * z.kd * 4);
	uint16_t *p = take(&mem, ROWS * z.ldp * 2);
	const uint16_t *qkv = (const uint16_t *)a->qkv + (int64_t)b * t * 3 * width + (int64_t)h * k;
	rows_in(q, &z, qkv, 3 * width, a, 1);
	rows_in(kr, &z, qkv + width, 3 * width, a, 1);
	rows_in(v, &z, qkv + 2 * width, 3 * width, a, 0);
	flip_pairs(kt, &z, kr);
	interleave(vi, &z, v);
	uint16_t *o = (uint16_t *)a->o + (int64_t)b * a->asking * width + (int64_t)h * k;
	tiles_on();
	for (int i0 = 0; i0 < a->asking; i0 += ROWS) {
		const int seen = a->causal && i0 + ROWS < z.tp ? i0 + ROWS : z.tp, rows = a->asking - i0 < ROWS ? a->asking - i0 : ROWS;
		DL_BARRIER();
		scores(s, &z, q + (int64_t)i0 * z.kd, kt, seen);
		DL_BARRIER();
		float sum[ROWS], top[ROWS];
		for (int i = 0; i < rows; i++) sum[i] = softmax_row(p + i * z.ldp, s + i * z.ld, a->causal ? i0 + i + 1 : t, seen, scale, top + i);
		for (int i = 0; a->lse && i < rows; i += VL) {
			const int n = rows - i < VL ? rows - i : VL;
			vstore_n(a->lse + (int64_t)chunk * a->asking + i0 + i, vadd(vload_n(top + i, n), log_(vload_n(sum + i, n))), n);
		}
		memset(p + rows * z.ldp, 0, (size_t)(ROWS - rows) * (size_t)z.ldp * 2);
		DL_BARRIER();
		rows_times(y, &z, p, vi, seen);
		DL_BARRIER();
		for (int i = 0; i < rows; i++) {
			const vf w = vset1(1.0f / sum[i]);
			for (int c = 0; c < k; c += VL) {
				const int n = k - c < VL ? k - c : VL;
				narrow_n(o + (i0 + i) * width + c, vmul(vload(y + i * z.kd + c), w), n);
			}
		}
	}
	tiles_off();
}

void dl_attn_tile(dl_pool *p, const dl_attn_args *a) { dl_parallel(p, a->b * a->n, attn_chunk, (void *)a); }

// grad_vec makes p and ds of 16 keys for two queries and stores them: pairs of
// queries side by side for the products over queries, ds by row as well.
DL_INLINE void grad_vec(uint32_t *pi, uint32_t *di, uint16_t *d0, uint16_t *d1, const float *s0, const float *s1, const float *g0, const float *g1,
                        vf c, vf l0, vf l1, vf e0, vf e1, __mmask16 m0, __mmask16 m1) {
	vf p0 = _mm512_maskz_mov_ps(m0, exp2_(vfma(vload(s0), c, l0))), p1 = _mm512_maskz_mov_ps(m1, exp2_(vfma(vload(s1), c, l1)));
	vf x0 = _mm512_maskz_mul_ps(m0, p0, vsub(vload(g0), e0)), x1 = _mm512_maskz_mul_ps(m1, p1, vsub(vload(g1), e1));
	__m512i ph = (__m512i)_mm512_cvtne2ps_pbh(p1, p0), dh = (__m512i)_mm512_cvtne2ps_pbh(x1, x0);
	const __m512i order = _mm512_set_epi16(31, 15, 30, 14, 29, 13, 28, 12, 27, 11, 26, 10, 25, 9, 24, 8, 23, 7, 22, 6, 21, 5, 20, 4, 19, 3,
	                                       18, 2, 17, 1, 16, 0);
	_mm512_store_si512(pi, _mm512_permutexvar_epi16(order, ph));
	_mm512_store_si512(di, _mm512_permutexvar_epi16(order, dh));
	_mm256_storeu_si256((__m256i *)d0, _mm512_castsi512_si256(dh));
	_mm256_storeu_si256((__m256i *)d1, _mm512_extracti64x4_epi64(dh, 1));
}

// One row of a pair in grad_rows: scores, do·v, keys seen, log-sum-exp, do·o.
typedef struct {
	const float *s, *g;
	uint16_t *d;
	int n;
	float lse, delta;
} grad_row;

// grad_rows runs grad_vec over a pair of rows.
static void grad_rows(uint32_t *pi, uint32_t *di, const grad_row *r0, const grad_row *r1, int end, float scale) {
	const vf c = vset1(scale * LOG2E), l0 = vset1(-r0->lse * LOG2E), l1 = vset1(-r1->lse * LOG2E), e0 = vset1(r0->delta), e1 = vset1(r1->delta);
	const int both = r0->n < r1->n ? r0->n : r1->n;
	int j = 0;
#define GRAD_VEC(m0, m1) grad_vec(pi + j, di + j, r0->d + j, r1->d + j, r0->s + j, r1->s + j, r0->g + j, r1->g + j, c, l0, l1, e0, e1, m0, m1)
	for (; j + VL <= both; j += VL) GRAD_VEC(0xffff, 0xffff);
	for (; j < end; j += VL) {
		const int n0 = r0->n - j, n1 = r1->n - j;
		GRAD_VEC(vmask_(n0 < 0 ? 0 : n0 < VL ? n0 : VL), vmask_(n1 < 0 ? 0 : n1 < VL ? n1 : VL));
	}
#undef GRAD_VEC
}

static void attn_back_chunk(void *arg, int chunk, int thread) {
	const dl_attn_args *a = arg;
	const sizes z = sizes_of(a);
	const int b = chunk / a->n, h = chunk % a->n, t = a->t, k = a->k;
	const int64_t width = (int64_t)a->n * k, sums = (int64_t)z.kd * z.tp * 4, pairs = GROUP / 2 * z.ld * 4;
	const float scale = 1.0f / sqrtf((float)k);
	char *mem = dl_scratch(a->pool, thread,
	                       9 * z.rows_bytes + 3 * sums + 2 * pairs + ROWS * (2 * z.ld * 4 + z.ldp * 2 + z.kd * 4));
	uint16_t *q = take(&mem, z.rows_bytes), *kr = take(&mem, z.rows_bytes), *v = take(&mem, z.rows_bytes), *dy = take(&mem, z.rows_bytes);
	char *kt = take(&mem, z.rows_bytes), *vt = take(&mem, z.rows_bytes), *ki = take(&mem, z.rows_bytes);
	char *ql = take(&mem, z.rows_bytes), *dyl = take(&mem, z.rows_bytes);
	float *dk = take(&mem, sums), *dv = take(&mem, sums); // transposed, in tiles
	uint32_t *pi = take(&mem, pairs), *di = take(&mem, pairs);
	float *s = take(&mem, ROWS * z.ld * 4), *g = take(&mem, ROWS * z.ld * 4), *dq = take(&mem, ROWS * z.kd * 4);
	uint16_t *d = take(&mem, ROWS * z.ldp * 2);
	float *rows = take(&mem, sums);
	const uint16_t *qkv = (const uint16_t *)a->qkv + (int64_t)b * t * 3 * width + (int64_t)h * k;
	const uint16_t *o = (const uint16_t *)a->o + (int64_t)b * t * width + (int64_t)h * k;
	uint16_t *dqkv = (uint16_t *)a->dqkv + (int64_t)b * t * 3 * width + (int64_t)h * k;
	rows_in(q, &z, qkv, 3 * width, a, 1);
	rows_in(kr, &z, qkv + width, 3 * width, a, 1);
	rows_in(v, &z, qkv + 2 * width, 3 * width, a, 0);
	rows_in(dy, &z, (const uint16_t *)a->d_o + (int64_t)b * t * width + (int64_t)h * k, width, a, 0);
	flip_pairs(kt, &z, kr);
	flip_pairs(vt, &z, v);
	interleave(ki, &z, kr);
	left_columns(ql, &z, q);
	left_columns(dyl, &z, dy);
	memset(dk, 0, (size_t)sums);
	memset(dv, 0, (size_t)sums);
	const float *lse = a->lse + (int64_t)chunk * t;
	tiles_on();
	for (int g0 = 0; g0 < z.tp; g0 += GROUP) {
		const int g1 = g0 + GROUP < z.tp ? g0 + GROUP : z.tp, blocks = (g1 - g0) / 32, seen = a->causal ? g1 : z.tp;
		for (int i0 = g0; i0 < g1; i0 += ROWS) {
			DL_BARRIER();
			scores(s, &z, q + (int64_t)i0 * z.kd, kt, seen);
			scores(g, &z, dy + (int64_t)i0 * z.kd, vt, seen);
			DL_BARRIER();
			for (int i = 0; i < ROWS; i += 2) {
				grad_row r[2];
				for (int e = 0; e < 2; e++) {
					const int at = i0 + i + e;
					r[e] = (grad_row){s + (i + e) * z.ld, g + (i + e) * z.ld, d + (i + e) * z.ldp, 0, 0, 0};
					if (at >= t) continue; // rows of padding see nothing
					r[e].n = a->causal ? at + 1 : t;
					r[e].lse = lse[at];
					dl_prefetch_row(o + at * width, width * 2, k * 2);
					vf sum = vzero();
					for (int c = 0; c < k; c += VL)
						sum = vfma(vloadh_n(o + at * width + c, k - c < VL ? k - c : VL), vloadh(dy + (int64_t)at * z.kd + c), sum);
					r[e].delta = vsum(sum);
				}
				const int64_t at = (i0 - g0 + i) / 2 * z.ld;
				grad_rows(pi + at, di + at, &r[0], &r[1], seen, scale);
			}
			DL_BARRIER();
			rows_times(dq, &z, d, ki, seen);
			DL_BARRIER();
			rows_out(dqkv + i0 * width * 3, 3 * width, dq, z.kd, i0, t - i0 < ROWS ? t - i0 : ROWS, a, 1, scale);
		}
		DL_BARRIER();
		columns_times(dv, &z, dyl, (const char *)pi, g0 / 32, blocks, seen);
		columns_times(dk, &z, ql, (const char *)di, g0 / 32, blocks, seen);
		DL_BARRIER();
	}
	tiles_off();
	flip_sums(rows, dk, &z);
	rows_out(dqkv + width, 3 * width, rows, z.kd, 0, t, a, 1, scale);
	flip_sums(rows, dv, &z);
	rows_out(dqkv + 2 * width, 3 * width, rows, z.kd, 0, t, a, 0, 1);
}

void dl_attn_back_tile(dl_pool *p, const dl_attn_args *a) { dl_parallel(p, a->b * a->n, attn_back_chunk, (void *)a); }

#include "isa_end.h"
#endif
