// What Go calls: one function for each method of kernel.Backend that is not a
// matrix product, with the meaning, order and names of its arguments. bf16
// tells the type of activations; dl_vec_convert writes bf16 with it set and
// reads bf16 without. engine is that of the products inside (gemm.h).
#ifndef DL_VEC_ENTRY_H
#define DL_VEC_ENTRY_H

#include "pool.h"

void dl_vec_embed(dl_pool *p, int level, int bf16, void *y, void *table, void *puzzle, void *pos, const void *ids,
	int64_t batch, int64_t t, int64_t prefix, int64_t d, int64_t vocab, int64_t puzzle_dim, float scale);
void dl_vec_embed_back(dl_pool *p, int level, int bf16, void *dtable, void *dpuzzle, void *dpos, void *dy, const void *ids,
	int64_t batch, int64_t t, int64_t prefix, int64_t d, int64_t vocab, int64_t puzzle_dim, float scale, int accumulate);
void dl_vec_attn(dl_pool *p, int level, int bf16, int engine, void *o, void *lse, void *qkv, const void *cos, const void *sin,
	int b, int t, int n, int k, int causal, int asking);
void dl_vec_attn_back(dl_pool *p, int level, int bf16, int engine, void *dqkv, void *d_o, void *o, void *qkv, void *lse, const void *cos, const void *sin,
	int b, int t, int n, int k, int causal);
void dl_vec_norm(dl_pool *p, int level, int bf16, void *y, void *rstd, const void *x, const void *z, const void *gain,
	float alpha, float eps, int64_t rows, int64_t d);
void dl_vec_norm_back(dl_pool *p, int level, int bf16, void *dx, void *dz, void *dgain, const void *dy, void *y, void *rstd,
	const void *x, const void *z, const void *gain, float alpha, int64_t rows, int64_t d);
void dl_vec_attn_cached(dl_pool *p, int level, int bf16, void *o, const void *qkv, void *keys, void *values, const void *cos, const void *sin,
	int64_t past, int64_t t, int64_t n, int64_t k, int64_t ctx);
void dl_vec_qknorm(dl_pool *p, int level, int bf16, void *y, void *rstd, const void *qkv, const void *gq, const void *gk, float eps,
	int64_t rows, int64_t n, int64_t k);
void dl_vec_qknorm_back(dl_pool *p, int level, int bf16, void *dqkv, void *dgq, void *dgk, const void *dy, const void *qkv, void *rstd, const void *gq,
	const void *gk, int64_t rows, int64_t n, int64_t k);
void dl_vec_swiglu(dl_pool *p, int level, int bf16, void *y, void *gu, int64_t m, int64_t f);
void dl_vec_swiglu_back(dl_pool *p, int level, int bf16, void *dgu, void *dy, void *gu, int64_t m, int64_t f);
void dl_vec_activate(dl_pool *p, int level, int bf16, void *y, const void *x, int64_t n, int kind);
void dl_vec_activate_back(dl_pool *p, int level, int bf16, void *dx, const void *dy, const void *x, int64_t n, int kind);
void dl_vec_loss(dl_pool *p, int level, void *loss, void *pred, const void *logits, const void *labels, int64_t rows, int64_t v, int stablemax);
void dl_vec_loss_back(dl_pool *p, int level, int bf16, void *dlogits, const void *logits, const void *labels, const void *scale,
	int64_t rows, int64_t v, int stablemax);
void dl_vec_add(dl_pool *p, int level, int bf16, void *dst, const void *a_, const void *b, const void *c, int64_t n);
void dl_vec_convert(dl_pool *p, int level, int bf16, void *dst, const void *src, int64_t n);
void dl_vec_adam(dl_pool *p, int level, void *w, const void *g, void *m, void *v, void *avg, int64_t n,
	float decay, float step, float root, float c1, float c2, float rate, float rest);
void dl_vec_adamw(dl_pool *p, int level, void *w, const void *g, void *m, void *v, void *avg, int64_t n,
	float decay, float step, float root, float c1, float c2, float rate, float rest, float scale, float eps);
void dl_vec_signsgd(dl_pool *p, int level, void *w, const void *g, int64_t n, float lr, float decay);
void dl_vec_lerp(dl_pool *p, int level, void *dst, const void *src, int64_t n, float rate, float rest);
double dl_vec_sumsq(dl_pool *p, int level, int bf16, const void *x, int64_t n);

#endif
