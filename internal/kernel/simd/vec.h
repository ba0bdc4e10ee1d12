// The kernels that are not matrix products: argument blocks and the list of
// variants. void pointers are activations, float or bf16 by the variant; NULL
// is an absent buffer. Blocks live on C's stack for one call.
#ifndef DL_VEC_H
#define DL_VEC_H

#include "pool.h"
#include <string.h>

typedef struct {
	void *y; // activations out (forward) or in (backward)
	float *table, *puzzle, *pos;
	const int32_t *ids;
	int64_t batch, t, prefix, d, vocab, puzzle_dim;
	float scale;
	int accumulate;
} dl_embed_args;

typedef struct {
	void *o, *qkv, *d_o, *dqkv;
	float *lse, *dq; // dq: partial sums of the backward call
	const float *cos, *sin;
	int b, t, n, k, causal, asking; // asking: positions that are queries, the first
	dl_pool *pool;
} dl_attn_args;

typedef struct {
	const void *x, *z, *dy;
	void *y, *dx, *dz;
	float *rstd, *dgain, *partial;
	const float *gain;
	float alpha, eps;
	int64_t rows, d, chunk;
} dl_norm_args;

typedef struct {
	void *o, *keys, *values; // without o keys and values are only added
	const void *qkv;
	const float *cos, *sin;
	int64_t past, t, n, k, ctx;
	dl_pool *pool;
} dl_cached_args;

typedef struct {
	void *y; // dqkv in the backward call
	const void *x, *dy;
	float *rstd, *dgain[2], *partial; // of q and k; partial [chunks][2][k]
	const float *gain[2];
	float eps;
	int64_t rows, n, k, chunk;
} dl_qknorm_args;

typedef struct {
	void *y, *gu, *dgu; // y is dy in the backward call
	int64_t m, f;
} dl_swiglu_args;

enum { DL_GELU, DL_GELU_ERF, DL_RELU2 }; // as kernel.Activation

typedef struct {
	void *y; // dx in the backward call
	const void *dy, *x;
	int64_t n;
	int kind;
} dl_activate_args;

typedef struct {
	const float *logits;
	const int32_t *labels;
	const double *scale;
	double *loss;
	int32_t *pred;
	void *dlogits;
	int64_t rows, v, chunk;
	int stablemax;
	dl_pool *pool;
} dl_loss_args;

typedef struct {
	void *dst;
	const void *a, *b, *c;
	int64_t n;
} dl_move_args;

typedef struct {
	float *w, *m, *v, *avg;
	const float *g;
	double *partial;
	int64_t n;
	float decay, step, root, c1, c2, lr, rate, rest, scale, eps; // rest: 1 - rate
} dl_update_args;

// DL_VEC_ACT and DL_VEC_F32 list what each variant implements: the former for
// float and bf16 activations, the latter once.
#define DL_VEC_ACT(X)                 \
	X(embed, dl_embed_args)           \
	X(embed_back, dl_embed_args)      \
	X(attn, dl_attn_args)             \
	X(attn_back, dl_attn_args)        \
	X(norm, dl_norm_args)             \
	X(norm_back, dl_norm_args)        \
	X(attn_cached, dl_cached_args)    \
	X(qknorm, dl_qknorm_args)         \
	X(qknorm_back, dl_qknorm_args)    \
	X(swiglu, dl_swiglu_args)         \
	X(swiglu_back, dl_swiglu_args)    \
	X(activate, dl_activate_args)     \
	X(activate_back, dl_activate_args) \
	X(loss_back, dl_loss_args)        \
	X(add, dl_move_args)              \
	X(sumsq, dl_update_args)
#define DL_VEC_F32(X)                 \
	X(loss, dl_loss_args)             \
	X(narrow, dl_move_args)           \
	X(widen, dl_move_args)            \
	X(adam, dl_update_args)           \
	X(adamw, dl_update_args)          \
	X(signsgd, dl_update_args)        \
	X(lerp, dl_update_args)

// DL_VEC_B16 lists what is there once more for bf16, with AVX512_BF16.
#define DL_VEC_B16(X)                 \
	X(norm, dl_norm_args)             \
	X(norm_back, dl_norm_args)        \
	X(qknorm, dl_qknorm_args)         \
	X(qknorm_back, dl_qknorm_args)    \
	X(swiglu, dl_swiglu_args)         \
	X(swiglu_back, dl_swiglu_args)    \
	X(activate, dl_activate_args)     \
	X(activate_back, dl_activate_args) \
	X(add, dl_move_args)              \
	X(sumsq, dl_update_args)          \
	X(attn, dl_attn_args)             \
	X(attn_back, dl_attn_args)

#define DL_DECLARE_ACT(f, args)                           \
	void dl_##f##_f_c(dl_pool *p, const args *a);         \
	void dl_##f##_h_c(dl_pool *p, const args *a);         \
	void dl_##f##_f_avx2(dl_pool *p, const args *a);      \
	void dl_##f##_h_avx2(dl_pool *p, const args *a);      \
	void dl_##f##_f_avx512(dl_pool *p, const args *a);    \
	void dl_##f##_h_avx512(dl_pool *p, const args *a);
#define DL_DECLARE_F32(f, args)                           \
	void dl_##f##_c(dl_pool *p, const args *a);           \
	void dl_##f##_avx2(dl_pool *p, const args *a);        \
	void dl_##f##_avx512(dl_pool *p, const args *a);
#define DL_DECLARE_B16(f, args) void dl_##f##_h_avx512bf16(dl_pool *p, const args *a);
DL_VEC_ACT(DL_DECLARE_ACT)
DL_VEC_F32(DL_DECLARE_F32)
DL_VEC_B16(DL_DECLARE_B16)

// Attention of bf16 on AMX tiles.
void dl_attn_tile(dl_pool *p, const dl_attn_args *a);
void dl_attn_back_tile(dl_pool *p, const dl_attn_args *a);

// dl_prefetch_row asks for a row of n bytes some rows ahead of p: rows of one
// head lie far apart, where the processor does not guess.
static inline __attribute__((unused)) void dl_prefetch_row(const void *p, int64_t stride, int n) {
	const char *ahead = (const char *)p + 12 * stride;
	for (int i = 0; i < n; i += 64) __builtin_prefetch(ahead + i);
}

// Partial sums of d gradients of gains, dl_gain_row(d) floats each: a vector's
// length more on either side, so that only whole vectors are added to a sum. The
// processor waits long for what a masked store has just written.
enum { DL_GAIN_SIDE = 16 };
static inline int64_t dl_gain_row(int64_t d) { return (d + 15) / 16 * 16 + 2 * DL_GAIN_SIDE; }
static inline float *dl_gain_at(float *partial, int64_t i, int64_t d) { return partial + i * dl_gain_row(d) + DL_GAIN_SIDE; }
// dl_gain_sum returns the sum numbered i, 0 from now on.
static inline float *dl_gain_sum(float *partial, int64_t i, int64_t d) {
	float *p = dl_gain_at(partial, i, d);
	memset(p - DL_GAIN_SIDE, 0, (size_t)dl_gain_row(d) * sizeof *p);
	return p;
}

// Loops over flat memory go in chunks of this many elements.
enum { DL_FLAT = 16384 };

#endif
