// CrossEntropyBackward: the gradient in double, rounded once to float and
// from there to bf16; that of softmax for bf16 in float throughout. The plain
// loop, for each row, with S = sum_j s(x_j):
//
//	d_j = scale * (s'(x_j)/S - [j = y] s'(x_y)/s(x_y)),  s' = s for softmax

DL_INLINE void ACT(scale_step)(act *d, const float *w, vf scale, int64_t i, int n, int k) {
	vf g[VECS];
	vloads(g, w + i, n, k);
	EACH(j, n) g[j] = vmul(g[j], scale);
	asts(d + i, g, n, k);
}

static void ACT(loss_back_chunk)(void *arg, int chunk, int thread) {
	const dl_loss_args *a = arg;
	const int64_t v = a->v, r0 = chunk * a->chunk, r1 = r0 + a->chunk < a->rows ? r0 + a->chunk : a->rows;
	double *w = dl_scratch(a->pool, thread, (size_t)(v + VD) * sizeof(double));
	for (int64_t r = r0; r < r1; r++) {
		const float *x = a->logits + r * v;
		act *d = (act *)a->dlogits + r * v;
		const int32_t y = a->labels[r];
		if (y < 0) {
			memset(d, 0, (size_t)v * sizeof *d);
			continue;
		}
		const double scale = a->scale[r];
		if (sizeof *d == 2 && !a->stablemax) {
			float *e = (float *)w;
			const double sum = DL_NAME(exps_)(e, x, v, x[DL_NAME(first_max_)(x, v)]);
			BY_GROUPS(0, v, ACT(scale_step), d, e, vset1((float)(scale / sum)));
			ast1(d + y, (float)(scale * (e[y] / sum - 1.0)));
			continue;
		}
		const double sum = DL_NAME(weights_)(w, x, v, a->stablemax, x[DL_NAME(first_max_)(x, v)]);
		const double wy = w[y];
		for (int64_t i = 0; i < v; i += VD) {
			const int n = v - i < VD ? (int)(v - i) : VD;
			vd g;
			memcpy(&g, w + i, sizeof g);
			if (a->stablemax) { // s' is 1 above zero and s^2 below
				vl negative = (vl)((n < VD ? vd_load_n(x + i, n) : vd_load(x + i)) < 0.0);
				g = vd_sel(negative, g * g, vd_set1(1)) * (1.0 / sum);
			} else {
				g = g / sum;
			}
			astd(d + i, g * scale, n);
		}
		double gy;
		if (a->stablemax) {
			const double dy = x[y] < 0 ? wy * wy : 1.0;
			gy = dy / sum - dy / wy;
		} else {
			gy = wy / sum - 1.0;
		}
		ast1(d + y, (float)(scale * gy));
	}
}

void ACT(dl_loss_back)(dl_pool *p, const dl_loss_args *a) {
	dl_parallel(p, (int)((a->rows + a->chunk - 1) / a->chunk), ACT(loss_back_chunk), (void *)a);
}
