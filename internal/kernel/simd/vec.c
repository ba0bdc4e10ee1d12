#include "vec_entry.h"

#include "gemm.h"
#include "isa.h"
#include "vec.h"

// RUN and RUN_ACT call the level's variant with the block a, RUN_B16 where
// there is one for AVX512_BF16.
#define RUN(f) DL_DISPATCH(level, dl_##f, (p, &a))
#define RUN_ACT(f)                                        \
	do {                                                  \
		if (bf16) DL_DISPATCH(level, dl_##f##_h, (p, &a)); \
		else DL_DISPATCH(level, dl_##f##_f, (p, &a));      \
	} while (0)

#if defined(__x86_64__)
#define RUN_B16(f)                                                                 \
	do {                                                                           \
		if (bf16 && level == DL_AVX512_BF16) dl_##f##_h_avx512bf16(p, &a);         \
		else RUN_ACT(f);                                                           \
	} while (0)
#else
#define RUN_B16(f) RUN_ACT(f)
#endif

// RUN_ATTN is RUN_ACT for attention, whose products have an engine as in gemm.h.
#if defined(__x86_64__)
#define RUN_ATTN(f)                                              \
	do {                                                         \
		if (engine == DL_TILE) dl_##f##_tile(p, &a);             \
		else if (engine == DL_DOT) dl_##f##_h_avx512bf16(p, &a); \
		else RUN_ACT(f);                                         \
	} while (0)
#else
#define RUN_ATTN(f) ((void)engine, RUN_ACT(f))
#endif

// chunk_rows returns how many rows of d elements make a chunk: about 8192
// elements.
static int64_t chunk_rows(int64_t rows, int64_t d) {
	int64_t n = 8192 / d;
	return n < 1 ? 1 : n > rows && rows > 0 ? rows : n;
}

void dl_vec_embed(dl_pool *p, int level, int bf16, void *y, void *table, void *puzzle, void *pos, const void *ids,
	int64_t batch, int64_t t, int64_t prefix, int64_t d, int64_t vocab, int64_t puzzle_dim, float scale) {
	dl_embed_args a = {y, table, puzzle, pos, ids, batch, t, prefix, d, vocab, puzzle_dim, scale, 0};
	RUN_ACT(embed);
}

void dl_vec_embed_back(dl_pool *p, int level, int bf16, void *dtable, void *dpuzzle, void *dpos, void *dy, const void *ids,
	int64_t batch, int64_t t, int64_t prefix, int64_t d, int64_t vocab, int64_t puzzle_dim, float scale, int accumulate) {
	dl_embed_args a = {dy, dtable, dpuzzle, dpos, ids, batch, t, prefix, d, vocab, puzzle_dim, scale, accumulate};
	RUN_ACT(embed_back);
}

void dl_vec_attn(dl_pool *p, int level, int bf16, int engine, void *o, void *lse, void *qkv, const void *cos, const void *sin,
	int b, int t, int n, int k, int causal, int asking) {
	dl_attn_args a = {.o = o, .qkv = qkv, .lse = lse, .cos = cos, .sin = sin, .b = b, .t = t, .n = n, .k = k, .causal = causal, .asking = asking, .pool = p};
	RUN_ATTN(attn);
}

void dl_vec_attn_back(dl_pool *p, int level, int bf16, int engine, void *dqkv, void *d_o, void *o, void *qkv, void *lse, const void *cos, const void *sin,
	int b, int t, int n, int k, int causal) {
	dl_attn_args a = {o, qkv, d_o, dqkv, lse, NULL, cos, sin, b, t, n, k, causal, t, p};
	RUN_ATTN(attn_back);
}

void dl_vec_norm(dl_pool *p, int level, int bf16, void *y, void *rstd, const void *x, const void *z, const void *gain,
	float alpha, float eps, int64_t rows, int64_t d) {
	dl_norm_args a = {.y = y, .rstd = rstd, .x = x, .z = z, .gain = gain, .alpha = alpha, .eps = eps, .rows = rows, .d = d};
	a.chunk = chunk_rows(rows, d);
	RUN_B16(norm);
}

void dl_vec_norm_back(dl_pool *p, int level, int bf16, void *dx, void *dz, void *dgain, const void *dy, void *y, void *rstd,
	const void *x, const void *z, const void *gain, float alpha, int64_t rows, int64_t d) {
	dl_norm_args a = {.dx = dx, .dz = dz, .dgain = dgain, .dy = dy, .y = y, .rstd = rstd, .x = x, .z = z, .gain = gain, .alpha = alpha, .rows = rows, .d = d};
	a.chunk = chunk_rows(rows, d);
	if (dgain) { // one partial sum for each of at most 64 chunks
		if (a.chunk < (rows + 63) / 64) a.chunk = (rows + 63) / 64;
		a.partial = dl_shared(p, DL_SLOT_A, (size_t)(64 * dl_gain_row(d)) * sizeof(float));
	}
	RUN_B16(norm_back);
}

void dl_vec_attn_cached(dl_pool *p, int level, int bf16, void *o, const void *qkv, void *keys, void *values, const void *cos, const void *sin,
	int64_t past, int64_t t, int64_t n, int64_t k, int64_t ctx) {
	dl_cached_args a = {o, keys, values, qkv, cos, sin, past, t, n, k, ctx, p};
	RUN_ACT(attn_cached);
}

void dl_vec_qknorm(dl_pool *p, int level, int bf16, void *y, void *rstd, const void *qkv, const void *gq, const void *gk, float eps,
	int64_t rows, int64_t n, int64_t k) {
	dl_qknorm_args a = {.y = y, .rstd = rstd, .x = qkv, .gain = {gq, gk}, .eps = eps, .rows = rows, .n = n, .k = k};
	a.chunk = chunk_rows(rows, 3 * n * k);
	RUN_B16(qknorm);
}

void dl_vec_qknorm_back(dl_pool *p, int level, int bf16, void *dqkv, void *dgq, void *dgk, const void *dy, const void *qkv, void *rstd, const void *gq,
	const void *gk, int64_t rows, int64_t n, int64_t k) {
	dl_qknorm_args a = {.y = dqkv, .dgain = {dgq, dgk}, .dy = dy, .x = qkv, .rstd = rstd, .gain = {gq, gk}, .rows = rows, .n = n, .k = k};
	a.chunk = chunk_rows(rows, 3 * n * k);
	if (dgq || dgk) { // partial sums of each of at most 64 chunks
		if (a.chunk < (rows + 63) / 64) a.chunk = (rows + 63) / 64;
		a.partial = dl_shared(p, DL_SLOT_A, (size_t)(64 * 2 * dl_gain_row(k)) * sizeof(float));
	}
	RUN_B16(qknorm_back);
}

void dl_vec_swiglu(dl_pool *p, int level, int bf16, void *y, void *gu, int64_t m, int64_t f) {
	dl_swiglu_args a = {y, gu, NULL, m, f};
	RUN_B16(swiglu);
}

void dl_vec_swiglu_back(dl_pool *p, int level, int bf16, void *dgu, void *dy, void *gu, int64_t m, int64_t f) {
	dl_swiglu_args a = {dy, gu, dgu, m, f};
	RUN_B16(swiglu_back);
}

void dl_vec_activate(dl_pool *p, int level, int bf16, void *y, const void *x, int64_t n, int kind) {
	dl_activate_args a = {y, NULL, x, n, kind};
	RUN_B16(activate);
}

void dl_vec_activate_back(dl_pool *p, int level, int bf16, void *dx, const void *dy, const void *x, int64_t n, int kind) {
	dl_activate_args a = {dx, dy, x, n, kind};
	RUN_B16(activate_back);
}

void dl_vec_loss(dl_pool *p, int level, void *loss, void *pred, const void *logits, const void *labels, int64_t rows, int64_t v, int stablemax) {
	dl_loss_args a = {.logits = logits, .labels = labels, .loss = loss, .pred = pred, .rows = rows, .v = v, .stablemax = stablemax, .pool = p};
	a.chunk = chunk_rows(rows, v);
	RUN(loss);
}

void dl_vec_loss_back(dl_pool *p, int level, int bf16, void *dlogits, const void *logits, const void *labels, const void *scale,
	int64_t rows, int64_t v, int stablemax) {
	dl_loss_args a = {.logits = logits, .labels = labels, .scale = scale, .dlogits = dlogits, .rows = rows, .v = v, .stablemax = stablemax, .pool = p};
	a.chunk = chunk_rows(rows, v);
	RUN_ACT(loss_back);
}

void dl_vec_add(dl_pool *p, int level, int bf16, void *dst, const void *a_, const void *b, const void *c, int64_t n) {
	dl_move_args a = {dst, a_, b, c, n};
	RUN_B16(add);
}

void dl_vec_convert(dl_pool *p, int level, int bf16, void *dst, const void *src, int64_t n) {
	dl_move_args a = {.dst = dst, .a = src, .n = n};
	if (bf16) RUN(narrow);
	else RUN(widen);
}

void dl_vec_adam(dl_pool *p, int level, void *w, const void *g, void *m, void *v, void *avg, int64_t n,
	float decay, float step, float root, float c1, float c2, float rate, float rest) {
	dl_update_args a = {.w = w, .g = g, .m = m, .v = v, .avg = avg, .n = n, .decay = decay, .step = step, .root = root, .c1 = c1, .c2 = c2, .rate = rate, .rest = rest};
	RUN(adam);
}

void dl_vec_adamw(dl_pool *p, int level, void *w, const void *g, void *m, void *v, void *avg, int64_t n,
	float decay, float step, float root, float c1, float c2, float rate, float rest, float scale, float eps) {
	dl_update_args a = {.w = w, .g = g, .m = m, .v = v, .avg = avg, .n = n, .decay = decay, .step = step, .root = root, .c1 = c1, .c2 = c2, .rate = rate, .rest = rest,
	                    .scale = scale, .eps = eps};
	RUN(adamw);
}

void dl_vec_signsgd(dl_pool *p, int level, void *w, const void *g, int64_t n, float lr, float decay) {
	dl_update_args a = {.w = w, .g = g, .n = n, .lr = lr, .decay = decay};
	RUN(signsgd);
}

void dl_vec_lerp(dl_pool *p, int level, void *dst, const void *src, int64_t n, float rate, float rest) {
	dl_update_args a = {.w = dst, .g = src, .n = n, .rate = rate, .rest = rest};
	RUN(lerp);
}

double dl_vec_sumsq(dl_pool *p, int level, int bf16, const void *x, int64_t n) {
	const int64_t chunks = (n + DL_FLAT - 1) / DL_FLAT;
	dl_update_args a = {.g = x, .n = n};
	a.partial = dl_shared(p, DL_SLOT_A, (size_t)(chunks + 1) * sizeof(double));
	RUN_B16(sumsq);
	double sum = 0;
	for (int64_t c = 0; c < chunks; c++) sum += a.partial[c];
	return sum;
}
