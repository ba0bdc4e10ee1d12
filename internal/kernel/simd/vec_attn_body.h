// Attention. A chunk is some queries of one head: their scores against a block
// of keys at a time, softmax that goes on from block to block, products with
// v. All in this thread's scratch; the T x T matrix of a head never exists.
//
// The plain loop, for each query i of a head:
//
//	s_j = q_i·k_j / √K,  o_i = Σ_j e^(s_j - max s) v_j / Σ_j e^(s_j - max s)
//
// Scores are transposed (vec_attn_soft.h), so o is too until it is stored:
// oᵀ = vᵀ·p. What a query gets doesn't depend on how queries are cut into
// chunks and blocks.

#ifndef DL_ATTN_SIZES
#define DL_ATTN_SIZES
static inline int dl_up(int x, int m) { return (x + m - 1) / m * m; }
static inline int dl_min(int a, int b) { return a < b ? a : b; }

// dl_even is the length of the fewest parts, nearly equal, multiples of unit
// and at most most long, that n is cut into.
static inline int dl_even(int n, int most, int unit) {
	const int parts = (n + most - 1) / most;
	return dl_up((n + parts - 1) / parts, unit);
}

// dl_attn_parts is the number of parts that each head's t positions are cut
// into so that many threads find work, however few heads there are. It doesn't
// depend on the number of threads, so that results don't.
static inline int dl_attn_parts(const dl_attn_args *a, int t) {
	enum { CHUNKS = 32, LEAST = 192 }; // wanted; positions in a part, else packing shows
	const int heads = a->b * a->n, most = (t + LEAST - 1) / LEAST;
	return heads <= 0 ? 1 : dl_min((CHUNKS + heads - 1) / heads, most);
}

// dl_take cuts n words off scratch memory, rounded up to a cache line.
static inline float *dl_take(float **mem, int64_t n) {
	float *p = *mem;
	*mem += (n + 15) / 16 * 16;
	return p;
}
#endif

#ifndef DL_ATTN_ONCE
#define DL_ATTN_ONCE
#include "vec_attn_mul.h"
#include "vec_attn_soft.h"

// Sizes of one call in this variant.
typedef struct {
	int tp;    // positions padded to whole vectors
	int kd;    // head elements likewise
	int w;     // words along the head
	int ldr;   // words between rows of head elements
	int rows;  // head elements padded to whole register tiles
	int keys;  // keys in a block
	int part;  // positions in a part, parts in all
	int parts;
} DL_NAME(attn_sizes);

static DL_NAME(attn_sizes) DL_NAME(attn_sizes_of)(const dl_attn_args *a, int cut) {
	enum { KEYS = 128 };
	DL_NAME(attn_sizes) z;
	z.tp = dl_up(a->t, VL);
	z.kd = dl_up(a->k, VL);
	z.w = (a->k + PER - 1) / PER;
	z.ldr = dl_up(z.w, VL);
	z.rows = dl_up(a->k, MUL_ROWS);
	z.keys = dl_even(a->t, KEYS, MUL_ROWS);
	z.part = dl_up((cut + dl_attn_parts(a, cut) - 1) / dl_attn_parts(a, cut), z.keys);
	z.parts = (cut + z.part - 1) / z.part;
	return z;
}

// flip_out transposes VL columns of src[rows][ld], each times its weight, into
// dst[VL][kd].
static void DL_NAME(flip_out)(float *dst, const DL_NAME(attn_sizes) *z, const float *src, int64_t ld, vf weight) {
	for (int c = 0; c < z->kd; c += VL) {
		vf r[VL];
		for (int i = 0; i < VL; i++) r[i] = c + i < z->rows ? vmul(vload(src + (c + i) * ld), weight) : vzero();
		transpose_(r);
		for (int i = 0; i < VL; i++) vstore(dst + i * z->kd + c, r[i]);
	}
}
#endif

// Rows of one head, k activations each.
typedef struct {
	act *p;
	int64_t stride;
} ACT(rows);

DL_INLINE ACT(rows) ACT(rows_at)(ACT(rows) r, int t) {
	if (r.p) r.p += t * r.stride;
	return r;
}

// rows_in copies n rows of k activations, stride apart, position t0 on, into
// dst[n][ldr words] with zeros up to the end of a row, rotated where asked. The
// rows of next are what comes to use after this; see dl_prefetch_row.
static void ACT(rows_in)(float *dst, const DL_NAME(attn_sizes) *z, ACT(rows) from, ACT(rows) next, int t0, int n, const dl_attn_args *a, int rotate) {
	const int k = a->k, half = k / 2, all = z->ldr * PER;
	const act *src = from.p;
	const int64_t stride = from.stride;
	for (int t = t0; t < t0 + n; t++, src += stride, dst += z->ldr) {
		el *d = (el *)dst;
		for (int i = 0; next.p && i < k; i += 64 / (int)sizeof *src) __builtin_prefetch(next.p + (t - t0) * next.stride + i, 0, 2);
		dl_prefetch_row(src, stride * (int64_t)sizeof *src, k * (int)sizeof *src);
		for (int i = k / VL * VL; i < all; i += VL) ELS(d + i, vzero(), VL);
		if (rotate && a->cos) {
			const float *cos = a->cos + (int64_t)t * half, *sin = a->sin + (int64_t)t * half;
			ROW_LOOP(half, i, m) {
				vf x = AK(src + i, m), y = AK(src + half + i, m), c = LOADK(cos + i, m), s = LOADK(sin + i, m);
				ELS(d + i, vsub(vmul(x, c), vmul(y, s)), m);
				ELS(d + half + i, vfma(y, c, vmul(x, s)), m);
			}
		} else {
			ROW_LOOP(k, i, m) { COPY(d + i, src + i, m); }
		}
	}
}

// pack lays out n rows from position t0 on, and zeros up to whole
// vectors of positions, in up to three ways:
//
//	rows[t][ldr]   as they are
//	flip[w][ldf]   transposed
//	inter[t/PER][kd]  a word for each head element; with pairs, of two positions
//
// temp holds VL rows.
static void ACT(pack)(float *rows, float *flip, int64_t ldf, float *inter, float *temp, const DL_NAME(attn_sizes) *z, ACT(rows) from, ACT(rows) next,
                      int t0, int n, const dl_attn_args *a, int rotate) {
	for (int t = 0; t < n; t += VL) {
		float *r = rows ? rows + (int64_t)t * z->ldr : PER == 1 && inter ? inter + (int64_t)t * z->ldr : temp;
		const int m = n - t < VL ? n - t : VL;
		ACT(rows_in)(r, z, ACT(rows_at)(from, t), ACT(rows_at)(next, t), t0 + t, m, a, rotate);
		memset(r + m * z->ldr, 0, (size_t)((VL - m) * z->ldr) * sizeof(float));
		if (flip) DL_NAME(flip)(flip + t, ldf, r, z->ldr, z->w);
#if DL_PAIR
		for (int i = 0; inter && i < VL; i += 2)
			for (int c = 0; c < z->kd; c += VL) {
				const __m256i *x = (const __m256i *)(r + i * z->ldr + c / 2), *y = (const __m256i *)(r + (i + 1) * z->ldr + c / 2);
				const __m512i lo = _mm512_cvtepu16_epi32(_mm256_loadu_si256(x)), hi = _mm512_cvtepu16_epi32(_mm256_loadu_si256(y));
				vstore(inter + (int64_t)(t + i) / 2 * z->kd + c, (vf)_mm512_or_si512(lo, _mm512_slli_epi32(hi, 16)));
			}
#endif
	}
}

// rows_out rounds n rows of src[][kd], position t0 on, into `to`, rotated
// backwards where asked, times scale.
static void ACT(rows_out)(ACT(rows) to, const float *src, int kd, int t0, int n, const dl_attn_args *a, int rotate, float scale) {
	const int k = a->k, half = k / 2;
	const vf sc = vset1(scale);
	act *dst = to.p;
	for (int t = t0; t < t0 + n; t++, dst += to.stride, src += kd) {
		if (rotate && a->cos) {
			const float *cos = a->cos + (int64_t)t * half, *sin = a->sin + (int64_t)t * half;
			ROW_LOOP(half, i, m) {
				vf x = vmul(LOADK(src + i, m), sc), y = vmul(LOADK(src + half + i, m), sc);
				vf c = LOADK(cos + i, m), s = LOADK(sin + i, m);
				SK(dst + i, vfma(x, c, vmul(y, s)), m);
				SK(dst + half + i, vsub(vmul(y, c), vmul(x, s)), m);
			}
		} else {
			ROW_LOOP(k, i, m) { SK(dst + i, vmul(LOADK(src + i, m), sc), m); }
		}
	}
}

static void ACT(attn_chunk)(void *arg, int chunk, int thread) {
	const dl_attn_args *a = arg;
	const DL_NAME(attn_sizes) z = DL_NAME(attn_sizes_of)(a, a->asking);
	const int head = chunk / z.parts, b = head / a->n, h = head % a->n, t = a->t, k = a->k;
	const int q0 = chunk % z.parts * z.part, q1 = dl_min(q0 + z.part, a->asking), last = a->causal ? q1 : t;
	const int64_t width = (int64_t)a->n * k, wide = MUL_VECS * VL;
	const float c = 1.44269504f / sqrtf((float)k);
	const int64_t nk = (int64_t)z.tp * z.ldr, nv = (int64_t)z.tp / PER * z.kd;
	float *mem = dl_scratch(a->pool, thread, (size_t)(nk + nv + (z.w + z.keys + z.rows) * wide + VL * (z.ldr + z.kd) + 128) * sizeof(float));
	float *kr = dl_take(&mem, nk), *vi = dl_take(&mem, nv), *qf = dl_take(&mem, z.w * wide), *s = dl_take(&mem, z.keys * wide);
	float *y = dl_take(&mem, z.rows * wide), *temp = dl_take(&mem, VL * z.ldr), *yt = dl_take(&mem, VL * z.kd);
	act *at = (act *)a->qkv + (int64_t)b * t * 3 * width + (int64_t)h * k;
	const ACT(rows) qs = {at, 3 * width}, ks = {at + width, 3 * width}, vs = {at + 2 * width, 3 * width}, none = {NULL, 0};
	const ACT(rows) os = {(act *)a->o + (int64_t)b * a->asking * width + (int64_t)h * k, width};
	ACT(pack)(kr, NULL, 0, NULL, NULL, &z, ks, vs, 0, last, a, 1);
	ACT(pack)(NULL, NULL, 0, vi, temp, &z, vs, a->asking < last ? none : qs, 0, last, a, 0);
	for (int i0 = q0; i0 < q1;) {
		const int vecs = DL_NAME(half_width)(q1 - i0), nq = vecs * VL, n = dl_min(nq, q1 - i0), mv = DL_NAME(mul_width)(n, vecs);
		const int seen = a->causal ? dl_min(last, i0 + nq) : last;
		DL_NAME(soft) x;
		ACT(pack)(NULL, qf, nq, NULL, temp, &z, ACT(rows_at)(qs, i0), ACT(rows_at)(os, i0), i0, n, a, 1);
		for (int k0 = 0; k0 < seen; k0 += z.keys) {
			const int m = dl_min(z.keys, seen - k0);
			DL_NAME(mul)(s, nq, (DL_NAME(left)){kr + (int64_t)k0 * z.ldr, z.ldr, 1}, qf, nq, m, mv, z.w, 0, NULL);
			if (a->causal && k0 + m > i0) DL_NAME(mask)(s, nq, m, vecs, m, 1, k0, i0);
			DL_NAME(softmax)(&x, s, nq, m, vecs, c, k0 == 0);
			DL_NAME(mul)(y, nq, (DL_NAME(left)){vi + (int64_t)k0 / PER * z.kd, 1, z.kd}, s, nq, k, mv, (m + PER - 1) / PER, k0 > 0, k0 ? x.scale : NULL);
		}
		for (int v = 0; v < vecs && v * VL < n; v++) {
			const int i = i0 + v * VL, m = dl_min(VL, q1 - i);
			if (a->lse) {
				const vf l = vfma(vmul(x.top[v], vset1(c)), vset1(0.693147181f), DL_NAME(vlog)(x.sum[v]));
				STOREK(a->lse + (int64_t)head * a->asking + i, l, m);
			}
			DL_NAME(flip_out)(yt, &z, y + v * VL, nq, vdiv(vset1(1), x.sum[v]));
			ACT(rows_out)(ACT(rows_at)(os, i), yt, z.kd, i, m, a, 0, 1);
		}
		i0 += nq;
	}
}

void ACT(dl_attn)(dl_pool *p, const dl_attn_args *a) {
	dl_parallel(p, a->b * a->n * DL_NAME(attn_sizes_of)(a, a->asking).parts, ACT(attn_chunk), (void *)a);
}

#include "vec_attn_back_body.h"
