// Optimizer steps and other loops over flat float memory.

DL_INLINE int DL_NAME(flat_chunks)(int64_t n) { return (int)((n + DL_FLAT - 1) / DL_FLAT); }

// FLAT_LOOP(n, chunk, i, k) runs the block that follows for each vector of a
// chunk: i is its first element, k how many of its elements count.
#define FLAT_LOOP(n, chunk, i, k)                                                                                 \
	for (int64_t i = (int64_t)(chunk) * DL_FLAT, end_ = (n) < i + DL_FLAT ? (n) : i + DL_FLAT, k = VL; i < end_; i += VL) \
		if ((k = end_ - i < VL ? end_ - i : VL), 1)

// mix_: c*x + (old - c*old), both brackets fused: the reference code's order.
DL_INLINE vf DL_NAME(mix_)(vf old, vf x, vf c) { return vfused(c, x, vfused(vsub(vzero(), c), old, old)); }

static void DL_NAME(adam_chunk)(void *arg, int chunk, int thread) {
	const dl_update_args *a = arg;
	(void)thread;
	const vf c1 = vset1(a->c1), c2 = vset1(a->c2), decay = vset1(a->decay), step = vset1(-a->step), root = vset1(a->root);
	FLAT_LOOP(a->n, chunk, i, k) {
		vf g = LOADK(a->g + i, k);
		vf m = DL_NAME(mix_)(LOADK(a->m + i, k), g, c1);
		vf v = DL_NAME(mix_)(LOADK(a->v + i, k), vmul(g, g), c2);
		STOREK(a->m + i, m, k);
		STOREK(a->v + i, v, k);
		vf w = vmul(LOADK(a->w + i, k), decay);
		STOREK(a->w + i, vfma(step, vatan2(m, vmul(vsqrt(v), root)), w), k);
	}
}

void DL_NAME(dl_adam)(dl_pool *p, const dl_update_args *a) {
	dl_parallel(p, DL_NAME(flat_chunks)(a->n), DL_NAME(adam_chunk), (void *)a);
}

static void DL_NAME(signsgd_chunk)(void *arg, int chunk, int thread) {
	const dl_update_args *a = arg;
	(void)thread;
	const vf decay = vset1(a->decay), up = vset1(a->lr), down = vset1(-a->lr);
	FLAT_LOOP(a->n, chunk, i, k) {
		vf g = LOADK(a->g + i, k);
		vf s = vsel_gt(g, vzero(), up, vsel_gt(vzero(), g, down, vzero()));
		STOREK(a->w + i, vsub(vmul(LOADK(a->w + i, k), decay), s), k);
	}
}

void DL_NAME(dl_signsgd)(dl_pool *p, const dl_update_args *a) {
	dl_parallel(p, DL_NAME(flat_chunks)(a->n), DL_NAME(signsgd_chunk), (void *)a);
}

// dst + (1-rate)*(src - dst) would lose nothing either, but rate*dst +
// (1-rate)*src is the definition.
static void DL_NAME(lerp_chunk)(void *arg, int chunk, int thread) {
	const dl_update_args *a = arg;
	(void)thread;
	const vf rate = vset1(a->rate), rest = vset1(a->c1);
	FLAT_LOOP(a->n, chunk, i, k) {
		STOREK(a->w + i, vfma(rest, LOADK(a->g + i, k), vmul(rate, LOADK(a->w + i, k))), k);
	}
}

void DL_NAME(dl_lerp)(dl_pool *p, const dl_update_args *a) {
	dl_parallel(p, DL_NAME(flat_chunks)(a->n), DL_NAME(lerp_chunk), (void *)a);
}

static void DL_NAME(narrow_chunk)(void *arg, int chunk, int thread) {
	const dl_move_args *a = arg;
	(void)thread;
	uint16_t *dst = a->dst;
	const float *src = a->a;
	FLAT_LOOP(a->n, chunk, i, k) {
		if (k == VL) vstoreh(dst + i, vload(src + i));
		else vstoreh_n(dst + i, vload_n(src + i, (int)k), (int)k);
	}
}

void DL_NAME(dl_narrow)(dl_pool *p, const dl_move_args *a) {
	dl_parallel(p, DL_NAME(flat_chunks)(a->n), DL_NAME(narrow_chunk), (void *)a);
}

static void DL_NAME(widen_chunk)(void *arg, int chunk, int thread) {
	const dl_move_args *a = arg;
	(void)thread;
	float *dst = a->dst;
	const uint16_t *src = a->a;
	FLAT_LOOP(a->n, chunk, i, k) {
		if (k == VL) vstore(dst + i, vloadh(src + i));
		else vstore_n(dst + i, vloadh_n(src + i, (int)k), (int)k);
	}
}

void DL_NAME(dl_widen)(dl_pool *p, const dl_move_args *a) {
	dl_parallel(p, DL_NAME(flat_chunks)(a->n), DL_NAME(widen_chunk), (void *)a);
}
