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

// One float row in scratch memory, padded to whole vectors before and after.
DL_INLINE int64_t ACT(norm_pad)(int64_t d) { return (d + VL - 1) / VL * VL + LINES * VL; }

// residual_: s of n vectors at element at, lanes f to k-1 of a single one.
DL_INLINE void ACT(residual_)(vf *s, const dl_norm_args *a, int64_t at, int n, int f, int k) {
	vf z[2];
	LOADR(alds, ald_r, s, (const act *)a->x + at, n, f, k);
	EACH(j, n) s[j] = vmul(vset1(a->alpha), s[j]);
	if (!a->z) return;
	LOADR(alds, ald_r, z, (const act *)a->z + at, n, f, k);
	EACH(j, n) s[j] = vadd(s[j], z[j]);
}

// Rows whose length is no multiple of a cache line begin anywhere in one, and
// every access to a whole vector would touch two lines. So vectors begin where
// lines of the result do, the first one partial. Lane by lane a sum has the
// same terms in the same order as from the first element on, only turned round.

// (Rows of bf16 lose more to vectors of half a line than they win.)
enum { ACT(norm_lines) = LINES && sizeof(act) == 4 };

// skip_ is how many elements of the first line come before p.
DL_INLINE int ACT(skip_)(const act *p) { return (int)((uintptr_t)p % 64 / sizeof(act)); }

// norm_ragged: do some of these rows begin inside a line?
DL_INLINE int ACT(norm_ragged)(const void *p, int64_t d) { return ACT(norm_lines) && (ACT(skip_)(p) || d * sizeof(act) % 64); }

// BY_LINES calls step(..., i, n, f, k) for i over a row of d elements: n
// vectors that begin at element i; of a single one only lanes f to k-1 count.
#define BY_LINES(skip, d, width, step, ...)                                                       \
	do {                                                                                          \
		int64_t i_ = 0;                                                                           \
		if (skip) {                                                                               \
			step(__VA_ARGS__, -(skip), 1, skip, (skip) + (d) < VL ? (skip) + (int)(d) : VL);      \
			i_ = VL - (skip);                                                                     \
		}                                                                                         \
		for (; i_ + (width) * VL <= (d); i_ += (width) * VL) step(__VA_ARGS__, i_, width, 0, VL); \
		for (; i_ + VL <= (d); i_ += VL) step(__VA_ARGS__, i_, 1, 0, VL);                         \
		if (i_ < (d)) step(__VA_ARGS__, i_, 1, 0, (int)((d) - i_));                               \
	} while (0)

DL_INLINE void ACT(norm_sum)(const dl_norm_args *a, float *s, vf *sum, int64_t at, int64_t i, int n, int f, int k) {
	vf v[2];
	ACT(residual_)(v, a, at + i, n, f, k);
	EACH(j, n) vstore(s + i + j * VL, v[j]);
	EACH(j, n) *sum = vfma(v[j], v[j], *sum);
}

DL_INLINE void ACT(norm_scale)(const dl_norm_args *a, const float *s, vf r, act *y, int64_t i, int n, int f, int k) {
	vf v[VECS], g[VECS];
	EACH(j, n) v[j] = vmul(vload(s + i + j * VL), r);
	if (a->gain) {
		LOADR(vloads, vload_r, g, a->gain + i, n, f, k);
		EACH(j, n) v[j] = vmul(v[j], g[j]);
	}
	STORER(asts, ast_r, y + i, v, n, f, k);
}

DL_INLINE void ACT(norm_rows)(const dl_norm_args *a, float *s, int64_t r, int rows, const int ragged) {
	const int64_t d = a->d;
	vf sum[ACT(norm_group)];
	act *y = (act *)a->y + r * d;
	for (int q = 0; q < rows; q++) {
		const int skip = ragged ? ACT(skip_)(y + q * d) : 0;
		sum[q] = vzero();
		BY_LINES(skip, d, 2, ACT(norm_sum), a, s + q * ACT(norm_pad)(d) + skip, &sum[q], (r + q) * d);
		if (skip) sum[q] = vturn(sum[q], skip);
	}
	EACH(q, rows) a->rstd[r + q] = 1.0f / sqrtf(vsum(sum[q]) / (float)d + a->eps);
	for (int q = 0; q < rows; q++) {
		const int skip = ragged ? ACT(skip_)(y + q * d) : 0;
		BY_LINES(skip, d, VECS, ACT(norm_scale), a, s + q * ACT(norm_pad)(d) + skip, vset1(a->rstd[r + q]), y + q * d);
	}
}

static void ACT(norm_chunk)(void *arg, int chunk, int thread) {
	const ACT(norm_call) *c = arg;
	const dl_norm_args *a = c->a;
	const int64_t r1 = (chunk + 1) * a->chunk < a->rows ? (chunk + 1) * a->chunk : a->rows;
	float *s = dl_scratch(c->pool, thread, (size_t)(ACT(norm_group) * ACT(norm_pad)(a->d)) * sizeof(float));
	int64_t r = chunk * a->chunk;
	if (ACT(norm_ragged)(a->y, a->d))
		for (; r + ACT(norm_group) <= r1; r += ACT(norm_group)) ACT(norm_rows)(a, s, r, ACT(norm_group), 1);
	for (; r + ACT(norm_group) <= r1; r += ACT(norm_group)) ACT(norm_rows)(a, s, r, ACT(norm_group), 0);
	for (; r < r1; r++) ACT(norm_rows)(a, s, r, 1, ACT(norm_lines));
}

void ACT(dl_norm)(dl_pool *p, const dl_norm_args *a) {
	ACT(norm_call) c = {a, p};
	dl_parallel(p, (int)((a->rows + a->chunk - 1) / a->chunk), ACT(norm_chunk), &c);
}

// dx = alpha*ds, dz = ds, ds = r*(g - n*mean(g*n)), g = dy*gain; n = s*r is
// made from x and z with a gain, else it is y itself. Made from bf16 it is kept
// in normed for the second pass; from float it is cheaper made again.
// Each chunk adds its rows' dy*n to its own row of partial.
DL_INLINE void ACT(norm_back_sum)(const dl_norm_args *a, float *normed, float *dgain, vf *sum, vf r, int64_t at, int64_t i, int n, int f, int k) {
	vf g[2], v[2], t[2];
	LOADR(alds, ald_r, g, (const act *)a->dy + at + i, n, f, k);
	if (a->gain) {
		ACT(residual_)(v, a, at + i, n, f, k);
		EACH(j, n) v[j] = vmul(v[j], r);
		if (sizeof(act) == 2) EACH(j, n) vstore(normed + i + j * VL, v[j]);
	} else {
		LOADR(alds, ald_r, v, (const act *)a->y + at + i, n, f, k);
	}
	if (dgain) {
		vloads(t, dgain + i, n, VL);
		EACH(j, n) t[j] = vfma(g[j], v[j], t[j]);
		vstores(dgain + i, t, n, VL);
	}
	if (a->gain) {
		LOADR(vloads, vload_r, t, a->gain + i, n, f, k);
		EACH(j, n) g[j] = vmul(g[j], t[j]);
	}
	EACH(j, n) *sum = vfma(g[j], v[j], *sum);
}

DL_INLINE void ACT(norm_back_out)(const dl_norm_args *a, const float *normed, vf mean, vf r, int64_t at, int64_t i, int n, int f, int k) {
	vf g[2], v[2];
	LOADR(alds, ald_r, g, (const act *)a->dy + at + i, n, f, k);
	if (a->gain) {
		LOADR(vloads, vload_r, v, a->gain + i, n, f, k);
		EACH(j, n) g[j] = vmul(g[j], v[j]);
		if (sizeof(act) == 2) {
			EACH(j, n) v[j] = vload(normed + i + j * VL);
		} else {
			ACT(residual_)(v, a, at + i, n, f, k);
			EACH(j, n) v[j] = vmul(v[j], r);
		}
	} else {
		LOADR(alds, ald_r, v, (const act *)a->y + at + i, n, f, k);
	}
	EACH(j, n) g[j] = vmul(r, vsub(g[j], vmul(v[j], mean)));
	EACH(j, n) v[j] = vmul(vset1(a->alpha), g[j]);
	STORER(asts, ast_r, (act *)a->dx + at + i, v, n, f, k);
	if (a->dz) STORER(asts, ast_r, (act *)a->dz + at + i, g, n, f, k);
}

DL_INLINE void ACT(norm_back_rows)(const dl_norm_args *a, float *normed, float *dgain, int64_t r, int rows, const int ragged) {
	const int64_t d = a->d;
	vf sum[ACT(norm_group)];
	const act *dx = (act *)a->dx + r * d;
	for (int q = 0; q < rows; q++) {
		const int skip = ragged ? ACT(skip_)(dx + q * d) : 0;
		sum[q] = vzero();
		BY_LINES(skip, d, 2, ACT(norm_back_sum), a, normed + q * ACT(norm_pad)(d) + skip, dgain, &sum[q], vset1(a->rstd[r + q]), (r + q) * d);
		if (skip) sum[q] = vturn(sum[q], skip);
	}
	for (int q = 0; q < rows; q++) {
		const int skip = ragged ? ACT(skip_)(dx + q * d) : 0;
		const vf mean = vset1(vsum(sum[q]) / (float)d);
		BY_LINES(skip, d, 2, ACT(norm_back_out), a, normed + q * ACT(norm_pad)(d) + skip, mean, vset1(a->rstd[r + q]), (r + q) * d);
	}
}

static void ACT(norm_back_chunk)(void *arg, int chunk, int thread) {
	const ACT(norm_call) *c = arg;
	const dl_norm_args *a = c->a;
	const int64_t d = a->d, r1 = (chunk + 1) * a->chunk < a->rows ? (chunk + 1) * a->chunk : a->rows;
	float *normed = dl_scratch(c->pool, thread, (size_t)(ACT(norm_group) * ACT(norm_pad)(d)) * sizeof(float));
	float *dgain = a->dgain ? dl_gain_sum(a->partial, chunk, d) : NULL;
	int64_t r = chunk * a->chunk;
	if (ACT(norm_ragged)(a->dx, d))
		for (; r + ACT(back_group) <= r1; r += ACT(back_group)) ACT(norm_back_rows)(a, normed, dgain, r, ACT(back_group), 1);
	for (; r + ACT(back_group) <= r1; r += ACT(back_group)) ACT(norm_back_rows)(a, normed, dgain, r, ACT(back_group), 0);
	for (; r < r1; r++) ACT(norm_back_rows)(a, normed, dgain, r, 1, ACT(norm_lines));
}

void ACT(dl_norm_back)(dl_pool *p, const dl_norm_args *a) {
	const int chunks = (int)((a->rows + a->chunk - 1) / a->chunk);
	ACT(norm_call) call = {a, p};
	dl_parallel(p, chunks, ACT(norm_back_chunk), &call);
	if (!a->dgain) return;
	for (int c = 0; c < chunks; c++) {
		const float *part = dl_gain_at(a->partial, c, a->d);
		ROW_LOOP(a->d, i, k) { STOREK(a->dgain + i, vadd(LOADK(a->dgain + i, k), LOADK(part + i, k)), k); }
	}
}

#undef BY_LINES
