// Optimizer steps and other loops over flat float memory.

// mix_: c*x + (old - c*old), both brackets fused: the reference code's order.
DL_INLINE vf DL_NAME(mix_)(vf old, vf x, vf c) { return vfused(c, x, vfused(vsub(vzero(), c), old, old)); }

// lerp_: rate*old + rest*x. (old + rest*(x - old) would lose nothing either,
// but this is the definition.)
DL_INLINE vf DL_NAME(lerp_)(const dl_update_args *a, vf old, vf x) { return vfma(vset1(a->rest), x, vmul(vset1(a->rate), old)); }

// average_ takes n vectors of new weights into their moving average.
DL_INLINE void DL_NAME(average_)(const dl_update_args *a, const vf *w, int64_t i, int n, int k) {
	vf x[VECS];
	if (!a->avg) return;
	vloads(x, a->avg + i, n, k);
	EACH(j, n) x[j] = DL_NAME(lerp_)(a, x[j], w[j]);
	vstores(a->avg + i, x, n, k);
}

// AdamATan2. For each i, with step = lr/(1-b1^t), root = 1/sqrt(1-b2^t), c = 1-b
// and decay = 1-lr*wd:
//
//	m = c1*g + (m - c1*m),  v = c2*g^2 + (v - c2*v)
//	w = decay*w - step*atan2(m, sqrt(v)*root)
DL_INLINE void DL_NAME(adam_step)(const dl_update_args *a, int64_t i, int n, int k) {
	vf g[VECS], m[VECS], v[VECS], w[VECS];
	vloads(g, a->g + i, n, k);
	vloads(m, a->m + i, n, k);
	vloads(v, a->v + i, n, k);
	EACH(j, n) m[j] = DL_NAME(mix_)(m[j], g[j], vset1(a->c1));
	EACH(j, n) v[j] = DL_NAME(mix_)(v[j], vmul(g[j], g[j]), vset1(a->c2));
	vstores(a->m + i, m, n, k);
	vstores(a->v + i, v, n, k);
	EACH(j, n) v[j] = vmul(vsqrt(v[j]), vset1(a->root));
	vatan2s(m, v, n);
	vloads(w, a->w + i, n, k);
	EACH(j, n) w[j] = vfma(vset1(-a->step), m[j], vmul(w[j], vset1(a->decay)));
	vstores(a->w + i, w, n, k);
	DL_NAME(average_)(a, w, i, n, k);
}

static void DL_NAME(adam_chunk)(void *arg, int chunk, int thread) {
	const dl_update_args a = *(const dl_update_args *)arg;
	(void)thread;
	BY_GROUPS(FLAT_FROM(chunk), FLAT_TO(chunk, a.n), DL_NAME(adam_step), &a);
}

void DL_NAME(dl_adam)(dl_pool *p, const dl_update_args *a) {
	dl_parallel(p, DL_NAME(flat_chunks)(a->n), DL_NAME(adam_chunk), (void *)a);
}

// AdamW. The same with scale*g for g and
//
//	w = decay*w - step*m/(sqrt(v)*root + eps)
DL_INLINE void DL_NAME(adamw_step)(const dl_update_args *a, int64_t i, int n, int k) {
	vf g[VECS], m[VECS], v[VECS], w[VECS];
	vloads(g, a->g + i, n, k);
	vloads(m, a->m + i, n, k);
	vloads(v, a->v + i, n, k);
	EACH(j, n) g[j] = vmul(g[j], vset1(a->scale));
	EACH(j, n) m[j] = DL_NAME(mix_)(m[j], g[j], vset1(a->c1));
	EACH(j, n) v[j] = DL_NAME(mix_)(v[j], vmul(g[j], g[j]), vset1(a->c2));
	vstores(a->m + i, m, n, k);
	vstores(a->v + i, v, n, k);
	EACH(j, n) v[j] = vfma(vsqrt(v[j]), vset1(a->root), vset1(a->eps));
	EACH(j, n) m[j] = vdiv(m[j], v[j]);
	vloads(w, a->w + i, n, k);
	EACH(j, n) w[j] = vfma(vset1(-a->step), m[j], vmul(w[j], vset1(a->decay)));
	vstores(a->w + i, w, n, k);
	DL_NAME(average_)(a, w, i, n, k);
}

static void DL_NAME(adamw_chunk)(void *arg, int chunk, int thread) {
	const dl_update_args a = *(const dl_update_args *)arg;
	(void)thread;
	BY_GROUPS(FLAT_FROM(chunk), FLAT_TO(chunk, a.n), DL_NAME(adamw_step), &a);
}

void DL_NAME(dl_adamw)(dl_pool *p, const dl_update_args *a) {
	dl_parallel(p, DL_NAME(flat_chunks)(a->n), DL_NAME(adamw_chunk), (void *)a);
}

// SignSGD: w = decay*w - lr*sign(g), no step fused.
DL_INLINE void DL_NAME(signsgd_step)(const dl_update_args *a, int64_t i, int n, int k) {
	vf g[VECS], w[VECS];
	const vf up = vset1(a->lr), down = vset1(-a->lr);
	vloads(g, a->g + i, n, k);
	vloads(w, a->w + i, n, k);
	EACH(j, n) g[j] = vsel_gt(g[j], vzero(), up, vsel_gt(vzero(), g[j], down, vzero()));
	EACH(j, n) w[j] = vsub(vmul(w[j], vset1(a->decay)), g[j]);
	vstores(a->w + i, w, n, k);
}

static void DL_NAME(signsgd_chunk)(void *arg, int chunk, int thread) {
	const dl_update_args a = *(const dl_update_args *)arg;
	(void)thread;
	BY_GROUPS(FLAT_FROM(chunk), FLAT_TO(chunk, a.n), DL_NAME(signsgd_step), &a);
}

void DL_NAME(dl_signsgd)(dl_pool *p, const dl_update_args *a) {
	dl_parallel(p, DL_NAME(flat_chunks)(a->n), DL_NAME(signsgd_chunk), (void *)a);
}

// Lerp: dst = rate*dst + rest*src.
DL_INLINE void DL_NAME(lerp_step)(const dl_update_args *a, int64_t i, int n, int k) {
	vf w[VECS], x[VECS];
	vloads(w, a->w + i, n, k);
	vloads(x, a->g + i, n, k);
	EACH(j, n) w[j] = DL_NAME(lerp_)(a, w[j], x[j]);
	vstores(a->w + i, w, n, k);
}

static void DL_NAME(lerp_chunk)(void *arg, int chunk, int thread) {
	const dl_update_args a = *(const dl_update_args *)arg;
	(void)thread;
	BY_GROUPS(FLAT_FROM(chunk), FLAT_TO(chunk, a.n), DL_NAME(lerp_step), &a);
}

void DL_NAME(dl_lerp)(dl_pool *p, const dl_update_args *a) {
	dl_parallel(p, DL_NAME(flat_chunks)(a->n), DL_NAME(lerp_chunk), (void *)a);
}

// Convert: float to bf16, rounded to nearest, and back.
DL_INLINE void DL_NAME(narrow_step)(uint16_t *dst, const float *src, int64_t i, int n, int k) {
	vf v[VECS];
	vloads(v, src + i, n, k);
	vstoresh(dst + i, v, n, k);
}

static void DL_NAME(narrow_chunk)(void *arg, int chunk, int thread) {
	const dl_move_args *a = arg;
	(void)thread;
	BY_GROUPS(FLAT_FROM(chunk), FLAT_TO(chunk, a->n), DL_NAME(narrow_step), (uint16_t *)a->dst, a->a);
}

void DL_NAME(dl_narrow)(dl_pool *p, const dl_move_args *a) {
	dl_parallel(p, DL_NAME(flat_chunks)(a->n), DL_NAME(narrow_chunk), (void *)a);
}

DL_INLINE void DL_NAME(widen_step)(float *dst, const uint16_t *src, int64_t i, int n, int k) {
	vf v[VECS];
	vloadsh(v, src + i, n, k);
	vstores(dst + i, v, n, k);
}

static void DL_NAME(widen_chunk)(void *arg, int chunk, int thread) {
	const dl_move_args *a = arg;
	(void)thread;
	BY_GROUPS(FLAT_FROM(chunk), FLAT_TO(chunk, a->n), DL_NAME(widen_step), (float *)a->dst, a->a);
}

void DL_NAME(dl_widen)(dl_pool *p, const dl_move_args *a) {
	dl_parallel(p, DL_NAME(flat_chunks)(a->n), DL_NAME(widen_chunk), (void *)a);
}
