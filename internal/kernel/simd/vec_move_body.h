// Sums of activations: dst = a + b (+ c), and sums of squares.

DL_INLINE void ACT(add_step)(act *dst, const act *a, const act *b, const act *c, int64_t i, int n, int k) {
	vf x[VECS], y[VECS];
	alds(x, a + i, n, k);
	alds(y, b + i, n, k);
	EACH(j, n) x[j] = vadd(x[j], y[j]);
	if (c) {
		alds(y, c + i, n, k);
		EACH(j, n) x[j] = vadd(x[j], y[j]);
	}
	asts(dst + i, x, n, k);
}

static void ACT(add_chunk)(void *arg, int chunk, int thread) {
	const dl_move_args *s = arg;
	(void)thread;
	const act *a = s->a, *b = s->b, *c = s->c;
	if (c) BY_GROUPS(FLAT_FROM(chunk), FLAT_TO(chunk, s->n), ACT(add_step), (act *)s->dst, a, b, c);
	else BY_GROUPS(FLAT_FROM(chunk), FLAT_TO(chunk, s->n), ACT(add_step), (act *)s->dst, a, b, NULL);
}

void ACT(dl_add)(dl_pool *p, const dl_move_args *a) {
	dl_parallel(p, DL_NAME(flat_chunks)(a->n), ACT(add_chunk), (void *)a);
}

// Partial sums of squares, one for each chunk, in double.
DL_INLINE void ACT(sumsq_step)(vd *s, const act *x, int64_t i, int n, int k) {
	vf v[VECS];
	// A read alone waits for memory more than it computes.
	EACH(j, n) __builtin_prefetch((const char *)(x + i) + 3072 + 64 * j);
	alds(v, x + i, n, k);
	EACH(j, n)
		for (int h = 0; h < VL / VD; h++) {
			vd d = vd_part(v[j], h);
			s[h] += d * d;
		}
}

static void ACT(sumsq_chunk)(void *arg, int chunk, int thread) {
	const dl_update_args *a = arg;
	(void)thread;
	vd s[VL / VD];
	for (int h = 0; h < VL / VD; h++) s[h] = vd_set1(0);
	BY_GROUPS(FLAT_FROM(chunk), FLAT_TO(chunk, a->n), ACT(sumsq_step), s, (const act *)a->g);
	for (int h = 1; h < VL / VD; h++) s[0] += s[h];
	a->partial[chunk] = vd_sum(s[0]);
}

void ACT(dl_sumsq)(dl_pool *p, const dl_update_args *a) {
	dl_parallel(p, DL_NAME(flat_chunks)(a->n), ACT(sumsq_chunk), (void *)a);
}
