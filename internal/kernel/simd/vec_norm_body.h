// ResidualNorm: y = gain * s * r, s = alpha*x + z, r = 1/sqrt(mean(s^2)+eps).
// The sums of four rows are made before the first is used, so that the next
// row's work hides the wait for the root; each row's result is as if it were
// alone. (Four rows side by side lose more to the reader of memory ahead.)

// Backward, four rows of float would no longer lie in the nearest cache.
enum { ACT(norm_group) = 4, ACT(back_group) = sizeof(act) == 2 ? 4 : 1 };

typedef struct {
	const dl_norm_args *a;
	dl_pool *pool;
} ACT(norm_call);

// One float row in scratch memory, padded to whole vectors.
DL_INLINE int64_t ACT(norm_pad)(int64_t d) { return (d + VL - 1) / VL * VL; }

// residual_: s of n vectors at element at, k of the last one.
DL_INLINE void ACT(residual_)(vf *s, const dl_norm_args *a, int64_t at, int n, int k) {
	vf z[2];
	alds(s, (const act *)a->x + at, n, k);
	EACH(j, n) s[j] = vmul(vset1(a->alpha), s[j]);
	if (!a->z) return;
	alds(z, (const act *)a->z + at, n, k);
	EACH(j, n) s[j] = vadd(s[j], z[j]);
}

// BY_PAIRS is BY_GROUPS with two vectors at once, over a row of d elements.
#define BY_PAIRS(d, step, ...)                                                  \
	do {                                                                        \
		int64_t i_ = 0;                                                         \
		for (; i_ + 2 * VL <= (d); i_ += 2 * VL) step(__VA_ARGS__, i_, 2, VL);  \
		for (; i_ + VL <= (d); i_ += VL) step(__VA_ARGS__, i_, 1, VL);          \
		if (i_ < (d)) step(__VA_ARGS__, i_, 1, (int)((d) - i_));                \
	} while (0)

DL_INLINE void ACT(norm_sum)(const dl_norm_args *a, float *s, vf *sum, int64_t at, int64_t i, int n, int k) {
	vf v[2];
	ACT(residual_)(v, a, at + i, n, k);
	EACH(j, n) vstore(s + i + j * VL, v[j]);
	EACH(j, n) *sum = vfma(v[j], v[j], *sum);
}

DL_INLINE void ACT(norm_scale)(const dl_norm_args *a, const float *s, vf r, act *y, int64_t i, int n, int k) {
	vf v[VECS], g[VECS];
	EACH(j, n) v[j] = vmul(vload(s + i + j * VL), r);
	if (a->gain) {
		vloads(g, a->gain + i, n, k);
		EACH(j, n) v[j] = vmul(v[j], g[j]);
	}
	asts(y + i, v, n, k);
}

DL_INLINE void ACT(norm_rows)(const dl_norm_args *a, float *s, int64_t r, int rows) {
	const int64_t d = a->d;
	vf sum[ACT(norm_group)];
	for (int q = 0; q < rows; q++) {
		sum[q] = vzero();
		BY_PAIRS(d, ACT(norm_sum), a, s + q * ACT(norm_pad)(d), &sum[q], (r + q) * d);
	}
	EACH(q, rows) a->rstd[r + q] = 1.0f / sqrtf(vsum(sum[q]) / (float)d + a->eps);
	for (int q = 0; q < rows; q++) BY_GROUPS(0, d, ACT(norm_scale), a, s + q * ACT(norm_pad)(d), vset1(a->rstd[r + q]), (act *)a->y + (r + q) * d);
}

static void ACT(norm_chunk)(void *arg, int chunk, int thread) {
	const ACT(norm_call) *c = arg;
	const dl_norm_args *a = c->a;
	const int64_t r1 = (chunk + 1) * a->chunk < a->rows ? (chunk + 1) * a->chunk : a->rows;
	float *s = dl_scratch(c->pool, thread, (size_t)(ACT(norm_group) * ACT(norm_pad)(a->d)) * sizeof(float));
	int64_t r = chunk * a->chunk;
	for (; r + ACT(norm_group) <= r1; r += ACT(norm_group)) ACT(norm_rows)(a, s, r, ACT(norm_group));
	for (; r < r1; r++) ACT(norm_rows)(a, s, r, 1);
}

void ACT(dl_norm)(dl_pool *p, const dl_norm_args *a) {
	ACT(norm_call) c = {a, p};
	dl_parallel(p, (int)((a->rows + a->chunk - 1) / a->chunk), ACT(norm_chunk), &c);
}

// dx = alpha*ds, dz = ds, ds = r*(g - n*mean(g*n)), g = dy*gain; n = s*r is
// made from x and z with a gain, else it is y itself. Made from bf16 it is kept
// in normed for the second pass; from float it is cheaper made again. Each chunk adds its rows' dy*n to its own row of partial.
DL_INLINE void ACT(norm_back_sum)(const dl_norm_args *a, float *normed, float *dgain, vf *sum, vf r, int64_t at, int64_t i, int n, int k) {
	vf g[2], v[2], t[2];
	alds(g, (const act *)a->dy + at + i, n, k);
	if (a->gain) {
		ACT(residual_)(v, a, at + i, n, k);
		EACH(j, n) v[j] = vmul(v[j], r);
		if (sizeof(act) == 2) EACH(j, n) vstore(normed + i + j * VL, v[j]);
	} else {
		alds(v, (const act *)a->y + at + i, n, k);
	}
	if (dgain) {
		vloads(t, dgain + i, n, k);
		EACH(j, n) t[j] = vfma(g[j], v[j], t[j]);
		vstores(dgain + i, t, n, k);
	}
	if (a->gain) {
		vloads(t, a->gain + i, n, k);
		EACH(j, n) g[j] = vmul(g[j], t[j]);
	}
	EACH(j, n) *sum = vfma(g[j], v[j], *sum);
}

DL_INLINE void ACT(norm_back_out)(const dl_norm_args *a, const float *normed, vf mean, vf r, int64_t at, int64_t i, int n, int k) {
	vf g[2], v[2];
	alds(g, (const act *)a->dy + at + i, n, k);
	if (a->gain) {
		vloads(v, a->gain + i, n, k);
		EACH(j, n) g[j] = vmul(g[j], v[j]);
		if (sizeof(act) == 2) {
			EACH(j, n) v[j] = vload(normed + i + j * VL);
		} else {
			ACT(residual_)(v, a, at + i, n, k);
			EACH(j, n) v[j] = vmul(v[j], r);
		}
	} else {
		alds(v, (const act *)a->y + at + i, n, k);
	}
	EACH(j, n) g[j] = vmul(r, vsub(g[j], vmul(v[j], mean)));
	EACH(j, n) v[j] = vmul(vset1(a->alpha), g[j]);
	asts((act *)a->dx + at + i, v, n, k);
	if (a->dz) asts((act *)a->dz + at + i, g, n, k);
}

DL_INLINE void ACT(norm_back_rows)(const dl_norm_args *a, float *normed, float *dgain, int64_t r, int rows) {
	const int64_t d = a->d;
	vf sum[ACT(norm_group)];
	for (int q = 0; q < rows; q++) {
		sum[q] = vzero();
		BY_PAIRS(d, ACT(norm_back_sum), a, normed + q * ACT(norm_pad)(d), dgain, &sum[q], vset1(a->rstd[r + q]), (r + q) * d);
	}
	for (int q = 0; q < rows; q++) {
		const vf mean = vset1(vsum(sum[q]) / (float)d);
		BY_PAIRS(d, ACT(norm_back_out), a, normed + q * ACT(norm_pad)(d), mean, vset1(a->rstd[r + q]), (r + q) * d);
	}
}

static void ACT(norm_back_chunk)(void *arg, int chunk, int thread) {
	const ACT(norm_call) *c = arg;
	const dl_norm_args *a = c->a;
	const int64_t d = a->d, r1 = (chunk + 1) * a->chunk < a->rows ? (chunk + 1) * a->chunk : a->rows;
	float *normed = dl_scratch(c->pool, thread, (size_t)(ACT(norm_group) * ACT(norm_pad)(d)) * sizeof(float));
	float *dgain = a->dgain ? a->partial + chunk * d : NULL;
	if (dgain) memset(dgain, 0, (size_t)d * sizeof(float));
	int64_t r = chunk * a->chunk;
	for (; r + ACT(back_group) <= r1; r += ACT(back_group)) ACT(norm_back_rows)(a, normed, dgain, r, ACT(back_group));
	for (; r < r1; r++) ACT(norm_back_rows)(a, normed, dgain, r, 1);
}

void ACT(dl_norm_back)(dl_pool *p, const dl_norm_args *a) {
	const int chunks = (int)((a->rows + a->chunk - 1) / a->chunk);
	ACT(norm_call) call = {a, p};
	dl_parallel(p, chunks, ACT(norm_back_chunk), &call);
	if (!a->dgain) return;
	for (int c = 0; c < chunks; c++) {
		const float *part = a->partial + c * a->d;
		ROW_LOOP(a->d, i, k) { STOREK(a->dgain + i, vadd(LOADK(a->dgain + i, k), LOADK(part + i, k)), k); }
	}
}

#undef BY_PAIRS
