// CrossEntropyBackward: the gradient in double, rounded once to float and
// from there to bf16.

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
