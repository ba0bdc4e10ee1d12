// CrossEntropy of float logits, in double. The plain loop, for each row x of v
// logits with label y, s(x) = e^(x - max x) or stablemax's below:
//
//	pred = first j with x_j = max x,  loss = -log(s(x_y) / sum_j s(x_j))

// stable_: s(x) of stablemax, x+1 for x >= 0 and 1/(1-x+1e-30) below. The
// quotient is never taken where it is not used (x = 1 would be a pole).
DL_INLINE vd DL_NAME(stable_)(vd x, vl *negative) {
	*negative = (vl)(x < 0.0);
	const vd one = vd_set1(1);
	vd inverse = one / vd_sel(*negative, one - x + 1e-30, one);
	return vd_sel(*negative, inverse, x + one);
}

// weights_ returns the sum of s(x) or e^(x-top) over a row and writes them to w
// where given (room for v rounded up to VD).
DL_INLINE void DL_NAME(weights_step)(double *w, const float *x, vd *sum, int stablemax, double top, int n, int k) {
	vd s[VECS];
	EACH(j, n) s[j] = k < VD ? vd_load_n(x, k) : vd_load(x + j * VD);
	if (stablemax) {
		vl negative;
		EACH(j, n) s[j] = DL_NAME(stable_)(s[j], &negative);
	} else {
		EACH(j, n) s[j] = s[j] - top;
		vd_exps(s, n);
	}
	if (k < VD) s[0] = vd_sel(vd_first(k), s[0], vd_set1(0));
	EACH(j, n) *sum += s[j];
	if (w) EACH(j, n) memcpy(w + j * VD, &s[j], sizeof s[j]);
}

DL_INLINE double DL_NAME(weights_)(double *w, const float *x, int64_t v, int stablemax, double top) {
	vd sum = vd_set1(0);
	int64_t i = 0;
	for (; i + VECS * VD <= v; i += VECS * VD) DL_NAME(weights_step)(w ? w + i : w, x + i, &sum, stablemax, top, VECS, VD);
	for (; i + VD <= v; i += VD) DL_NAME(weights_step)(w ? w + i : w, x + i, &sum, stablemax, top, 1, VD);
	if (i < v) DL_NAME(weights_step)(w ? w + i : w, x + i, &sum, stablemax, top, 1, (int)(v - i));
	return vd_sum(sum);
}

// first_max_: index of the first of the largest elements; NaN is never larger
// and, in front, never passed. Long rows go by blocks of 8 vectors: only the
// block in which the largest is first seen is searched for it.
static int64_t DL_NAME(first_max_)(const float *x, int64_t v) {
	int64_t best = 0, i = 0;
	if (v >= 8 * VL && x[0] == x[0]) {
		float top = x[0];
		for (; i + 8 * VL <= v; i += 8 * VL) {
			vf m = vset1(top);
			for (int j = 0; j < 8; j++) m = vmax(vload(x + i + j * VL), m);
			const float t = vmaxall(m);
			if (t > top) top = t, best = i;
		}
		while (x[best] != top) best++;
	}
	for (; i < v; i++)
		if (x[i] > x[best]) best = i;
	return best;
}

static void DL_NAME(loss_chunk)(void *arg, int chunk, int thread) {
	const dl_loss_args *a = arg;
	const int64_t v = a->v, r0 = chunk * a->chunk, r1 = r0 + a->chunk < a->rows ? r0 + a->chunk : a->rows;
	(void)thread;
	for (int64_t r = r0; r < r1; r++) {
		const float *x = a->logits + r * v;
		const int64_t best = DL_NAME(first_max_)(x, v);
		const int32_t y = a->labels[r];
		a->pred[r] = (int32_t)best;
		a->loss[r] = 0;
		if (y < 0) continue;
		if (a->stablemax) {
			vl negative;
			const vd s = DL_NAME(stable_)(vd_set1(x[y]), &negative);
			a->loss[r] = -log(s[0] / DL_NAME(weights_)(NULL, x, v, 1, 0));
		} else {
			const double top = x[best];
			a->loss[r] = log(DL_NAME(weights_)(NULL, x, v, 0, top)) - ((double)x[y] - top);
		}
	}
}

// exps_ writes e^(x-top) of a row to w in float and returns their sum.
DL_INLINE void DL_NAME(exps_step)(float *w, const float *x, vf top, vf *sum, int64_t i, int n, int k) {
	vf s[VECS];
	vloads(s, x + i, n, k);
	EACH(j, n) s[j] = vsub(s[j], top);
	vexps(s, n);
	vstores(w + i, s, n, k);
	if (k < VL) s[0] = vload_n(w + i, k);
	EACH(j, n) sum[j] = vadd(sum[j], s[j]);
}

static float DL_NAME(exps_)(float *w, const float *x, int64_t v, float top) {
	vf sum[VECS];
	EACH(j, VECS) sum[j] = vzero();
	BY_GROUPS(0, v, DL_NAME(exps_step), w, x, vset1(top), sum);
	for (int j = 1; j < VECS; j++) sum[0] = vadd(sum[0], sum[j]);
	return vsum(sum[0]);
}

void DL_NAME(dl_loss)(dl_pool *p, const dl_loss_args *a) {
	dl_parallel(p, (int)((a->rows + a->chunk - 1) / a->chunk), DL_NAME(loss_chunk), (void *)a);
}
