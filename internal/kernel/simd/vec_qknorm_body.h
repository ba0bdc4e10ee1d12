// QKNorm: RMSNorm over the k elements of each head of q and of each head of k,
// y = gain * x*r, r = 1/sqrt(mean(x^2)+eps); every token's 2n heads of k in a
// row; v is copied.

DL_INLINE void ACT(qk_sum)(vf *sum, const act *x, int64_t i, int n, int k) {
	vf v[VECS];
	alds(v, x + i, n, k);
	EACH(j, n) *sum = vfma(v[j], v[j], *sum);
}

DL_INLINE void ACT(qk_scale)(act *y, const act *x, vf r, const float *gain, int64_t i, int n, int k) {
	vf v[VECS], g[VECS];
	alds(v, x + i, n, k);
	EACH(j, n) v[j] = vmul(v[j], r);
	if (gain) {
		vloads(g, gain + i, n, k);
		EACH(j, n) v[j] = vmul(v[j], g[j]);
	}
	asts(y + i, v, n, k);
}

static void ACT(qknorm_chunk)(void *arg, int chunk, int thread) {
	const dl_qknorm_args *a = arg;
	(void)thread;
	const int64_t n = a->n, d = a->k, r0 = (int64_t)chunk * a->chunk, r1 = r0 + a->chunk < a->rows ? r0 + a->chunk : a->rows;
	for (int64_t row = r0; row < r1; row++) {
		const act *x = (const act *)a->x + row * 3 * n * d;
		act *y = (act *)a->y + row * 3 * n * d;
		for (int64_t h = 0; h < 2 * n; h++) {
			vf sum = vzero();
			BY_GROUPS(0, d, ACT(qk_sum), &sum, x + h * d);
			const float r = 1.0f / sqrtf(vsum(sum) / (float)d + a->eps);
			a->rstd[row * 2 * n + h] = r;
			BY_GROUPS(0, d, ACT(qk_scale), y + h * d, x + h * d, vset1(r), a->gain[h >= n]);
		}
		if (y != x) memcpy(y + 2 * n * d, x + 2 * n * d, (size_t)(n * d) * sizeof(act));
	}
}

void ACT(dl_qknorm)(dl_pool *p, const dl_qknorm_args *a) {
	dl_parallel(p, (int)((a->rows + a->chunk - 1) / a->chunk), ACT(qknorm_chunk), (void *)a);
}

// dx = r*(g - n*mean(g*n)) with g = dy*gain, n = x*r. Each chunk adds its dy*n
// to its own rows of partial, one for q and one for k.
DL_INLINE void ACT(qk_back_sum)(vf *sum, const act *dy, const act *x, vf r, const float *gain, float *dgain, int64_t i, int n, int k) {
	vf g[VECS], v[VECS], t[VECS];
	alds(g, dy + i, n, k);
	alds(v, x + i, n, k);
	EACH(j, n) v[j] = vmul(v[j], r);
	EACH(j, n) g[j] = vmul(g[j], v[j]);
	if (dgain) {
		vloads(t, dgain + i, n, VL);
		EACH(j, n) t[j] = vadd(t[j], g[j]);
		vstores(dgain + i, t, n, VL);
	}
	if (gain) {
		vloads(t, gain + i, n, k);
		EACH(j, n) *sum = vfma(g[j], t[j], *sum);
	} else {
		EACH(j, n) *sum = vadd(*sum, g[j]);
	}
}

DL_INLINE void ACT(qk_back_out)(act *dx, const act *dy, const act *x, vf r, vf mean, const float *gain, int64_t i, int n, int k) {
	vf g[VECS], v[VECS];
	alds(g, dy + i, n, k);
	if (gain) {
		vloads(v, gain + i, n, k);
		EACH(j, n) g[j] = vmul(g[j], v[j]);
	}
	alds(v, x + i, n, k);
	EACH(j, n) v[j] = vmul(vmul(v[j], r), mean);
	EACH(j, n) g[j] = vmul(r, vsub(g[j], v[j]));
	asts(dx + i, g, n, k);
}

static void ACT(qknorm_back_chunk)(void *arg, int chunk, int thread) {
	const dl_qknorm_args *a = arg;
	(void)thread;
	const int64_t n = a->n, d = a->k, r0 = (int64_t)chunk * a->chunk, r1 = r0 + a->chunk < a->rows ? r0 + a->chunk : a->rows;
	float *dgain[2] = {NULL, NULL};
	for (int i = 0; i < 2; i++)
		if (a->dgain[i]) dgain[i] = dl_gain_sum(a->partial, 2 * chunk + i, d);
	for (int64_t row = r0; row < r1; row++) {
		const int64_t at = row * 3 * n * d;
		const act *x = (const act *)a->x + at, *dy = (const act *)a->dy + at;
		act *dx = (act *)a->y + at;
		for (int64_t h = 0; h < 2 * n; h++) {
			const vf r = vset1(a->rstd[row * 2 * n + h]);
			vf sum = vzero();
			BY_GROUPS(0, d, ACT(qk_back_sum), &sum, dy + h * d, x + h * d, r, a->gain[h >= n], dgain[h >= n]);
			const vf mean = vset1(vsum(sum) / (float)d);
			BY_GROUPS(0, d, ACT(qk_back_out), dx + h * d, dy + h * d, x + h * d, r, mean, a->gain[h >= n]);
		}
		if (dx != dy) memcpy(dx + 2 * n * d, dy + 2 * n * d, (size_t)(n * d) * sizeof(act));
	}
}

void ACT(dl_qknorm_back)(dl_pool *p, const dl_qknorm_args *a) {
	const int chunks = (int)((a->rows + a->chunk - 1) / a->chunk);
	dl_parallel(p, chunks, ACT(qknorm_back_chunk), (void *)a);
	for (int i = 0; i < 2; i++)
		for (int c = 0; a->dgain[i] && c < chunks; c++) {
			float *sum = a->dgain[i];
			const float *part = dl_gain_at(a->partial, 2 * c + i, a->k);
			ROW_LOOP(a->k, j, k) { STOREK(sum + j, vadd(LOADK(sum + j, k), LOADK(part + j, k)), k); }
		}
}
