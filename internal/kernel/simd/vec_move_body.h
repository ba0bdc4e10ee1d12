// Sums of activations.

static void ACT(add_chunk)(void *arg, int chunk, int thread) {
	const dl_move_args *s = arg;
	(void)thread;
	act *dst = s->dst;
	const act *a = s->a, *b = s->b, *c = s->c;
	if (c) {
		FLAT_LOOP(s->n, chunk, i, k) { SK(dst + i, vadd(vadd(AK(a + i, k), AK(b + i, k)), AK(c + i, k)), k); }
	} else {
		FLAT_LOOP(s->n, chunk, i, k) { SK(dst + i, vadd(AK(a + i, k), AK(b + i, k)), k); }
	}
}

void ACT(dl_add)(dl_pool *p, const dl_move_args *a) {
	dl_parallel(p, DL_NAME(flat_chunks)(a->n), ACT(add_chunk), (void *)a);
}

// Partial sums of squares, one for each chunk, in double.
static void ACT(sumsq_chunk)(void *arg, int chunk, int thread) {
	const dl_update_args *a = arg;
	(void)thread;
	const act *x = (const act *)a->g;
	vd s[VL / VD];
	for (int j = 0; j < VL / VD; j++) s[j] = vd_set1(0);
	FLAT_LOOP(a->n, chunk, i, k) {
		float t[VL];
		vstore(t, AK(x + i, k));
		for (int j = 0; j < VL / VD; j++) {
			vd d = vd_load(t + j * VD);
			s[j] += d * d;
		}
	}
	for (int j = 1; j < VL / VD; j++) s[0] += s[j];
	a->partial[chunk] = vd_sum(s[0]);
}

void ACT(dl_sumsq)(dl_pool *p, const dl_update_args *a) {
	dl_parallel(p, DL_NAME(flat_chunks)(a->n), ACT(sumsq_chunk), (void *)a);
}
