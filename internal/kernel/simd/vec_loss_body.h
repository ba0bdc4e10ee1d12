// CrossEntropy of float logits, in double.

// stable_: s(x) of stablemax, x+1 for x >= 0 and 1/(1-x+1e-30) below. The
// quotient is never taken where it is not used (x = 1 would be a pole).
DL_INLINE vd DL_NAME(stable_)(vd x, vl *negative) {
	*negative = (vl)(x < 0.0);
	const vd one = vd_set1(1);
	vd inverse = one / vd_sel(*negative, one - x + 1e-30, one);
	return vd_sel(*negative, inverse, x + one);
}

// weights_ writes s(x) or e^(x-top) of a row to w (room for v rounded up to
// VD) and returns their sum.
static double DL_NAME(weights_)(double *w, const float *x, int64_t v, int stablemax, double top) {
	vd sum = vd_set1(0);
	for (int64_t i = 0; i < v; i += VD) {
		vd s, xi = v - i < VD ? vd_load_n(x + i, (int)(v - i)) : vd_load(x + i);
		vl negative;
		if (stablemax) s = DL_NAME(stable_)(xi, &negative);
		else s = vd_exp(xi - top);
		if (v - i < VD) s = vd_sel(vd_first((int)(v - i)), s, vd_set1(0));
		sum += s;
		memcpy(w + i, &s, sizeof s);
	}
	return vd_sum(sum);
}

// first_max_: index of the first of the largest elements; NaN is never larger
// and, in front, never passed.
static int64_t DL_NAME(first_max_)(const float *x, int64_t v) {
	int64_t best = 0, i = 0;
	if (v >= 4 * VL && x[0] == x[0]) {
		vf m = vset1(x[0]);
		for (; i + VL <= v; i += VL) m = vmax(vload(x + i), m);
		float top = vmaxall(m);
		for (; i < v; i++) top = x[i] > top ? x[i] : top;
		while (x[best] != top) best++;
		return best;
	}
	for (; i < v; i++)
		if (x[i] > x[best]) best = i;
	return best;
}

static void DL_NAME(loss_chunk)(void *arg, int chunk, int thread) {
	const dl_loss_args *a = arg;
	const int64_t v = a->v, r0 = chunk * a->chunk, r1 = r0 + a->chunk < a->rows ? r0 + a->chunk : a->rows;
	double *w = dl_scratch(a->pool, thread, (size_t)(v + VD) * sizeof(double));
	for (int64_t r = r0; r < r1; r++) {
		const float *x = a->logits + r * v;
		const int64_t best = DL_NAME(first_max_)(x, v);
		const int32_t y = a->labels[r];
		a->pred[r] = (int32_t)best;
		a->loss[r] = 0;
		if (y < 0) continue;
		const double top = x[best], sum = DL_NAME(weights_)(w, x, v, a->stablemax, top);
		a->loss[r] = a->stablemax ? -log(w[y] / sum) : log(sum) - ((double)x[y] - top);
	}
}

void DL_NAME(dl_loss)(dl_pool *p, const dl_loss_args *a) {
	dl_parallel(p, (int)((a->rows + a->chunk - 1) / a->chunk), DL_NAME(loss_chunk), (void *)a);
}
