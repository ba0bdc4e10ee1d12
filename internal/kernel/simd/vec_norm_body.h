// ResidualNorm: y = gain * s * r, s = alpha*x + z, r = 1/sqrt(mean(s^2)+eps).

DL_INLINE vf ACT(residual)(const act *x, const act *z, vf alpha, int64_t k) {
	vf s = vmul(alpha, AK(x, k));
	return z ? vadd(s, AK(z, k)) : s;
}

static void ACT(norm_chunk)(void *arg, int chunk, int thread) {
	const dl_norm_args *a = arg;
	(void)thread;
	const int64_t d = a->d, r0 = chunk * a->chunk, r1 = r0 + a->chunk < a->rows ? r0 + a->chunk : a->rows;
	const vf alpha = vset1(a->alpha);
	for (int64_t r = r0; r < r1; r++) {
		const act *x = (const act *)a->x + r * d, *z = a->z ? (const act *)a->z + r * d : NULL;
		act *y = (act *)a->y + r * d;
		vf sum = vzero();
		ROW_LOOP(d, i, k) {
			vf s = ACT(residual)(x + i, z ? z + i : NULL, alpha, k);
			sum = vfma(s, s, sum);
		}
		float rs = 1.0f / sqrtf(vsum(sum) / (float)d + a->eps);
		a->rstd[r] = rs;
		const vf vr = vset1(rs);
		ROW_LOOP(d, i, k) {
			vf s = vmul(ACT(residual)(x + i, z ? z + i : NULL, alpha, k), vr);
			if (a->gain) s = vmul(s, LOADK(a->gain + i, k));
			SK(y + i, s, k);
		}
	}
}

void ACT(dl_norm)(dl_pool *p, const dl_norm_args *a) {
	dl_parallel(p, (int)((a->rows + a->chunk - 1) / a->chunk), ACT(norm_chunk), (void *)a);
}

// normed_ is n = s*r: from x and z with a gain, else y itself.
DL_INLINE vf ACT(normed)(const dl_norm_args *a, int64_t at, vf alpha, vf r, int64_t k) {
	if (!a->gain) return AK((const act *)a->y + at, k);
	return vmul(ACT(residual)((const act *)a->x + at, a->z ? (const act *)a->z + at : NULL, alpha, k), r);
}

// dx = alpha*ds, dz = ds, ds = r*(g - n*mean(g*n)), g = dy*gain. Each chunk
// adds its rows' dy*n to its own row of partial.
static void ACT(norm_back_chunk)(void *arg, int chunk, int thread) {
	const dl_norm_args *a = arg;
	(void)thread;
	const int64_t d = a->d, r0 = chunk * a->chunk, r1 = r0 + a->chunk < a->rows ? r0 + a->chunk : a->rows;
	float *dgain = a->dgain ? a->partial + chunk * d : NULL;
	if (dgain) memset(dgain, 0, (size_t)d * sizeof(float));
	const vf alpha = vset1(a->alpha);
	for (int64_t r = r0; r < r1; r++) {
		const act *dy = (const act *)a->dy + r * d;
		act *dx = (act *)a->dx + r * d, *dz = a->dz ? (act *)a->dz + r * d : NULL;
		const vf rs = vset1(a->rstd[r]);
		vf sum = vzero();
		ROW_LOOP(d, i, k) {
			vf g = AK(dy + i, k), n = ACT(normed)(a, r * d + i, alpha, rs, k);
			if (dgain) STOREK(dgain + i, vfma(g, n, LOADK(dgain + i, k)), k);
			if (a->gain) g = vmul(g, LOADK(a->gain + i, k));
			sum = vfma(g, n, sum);
		}
		const vf mean = vset1(vsum(sum) / (float)d);
		ROW_LOOP(d, i, k) {
			vf g = AK(dy + i, k), n = ACT(normed)(a, r * d + i, alpha, rs, k);
			if (a->gain) g = vmul(g, LOADK(a->gain + i, k));
			vf ds = vmul(rs, vsub(g, vmul(n, mean)));
			SK(dx + i, vmul(alpha, ds), k);
			if (dz) SK(dz + i, ds, k);
		}
	}
}

void ACT(dl_norm_back)(dl_pool *p, const dl_norm_args *a) {
	const int chunks = (int)((a->rows + a->chunk - 1) / a->chunk);
	dl_parallel(p, chunks, ACT(norm_back_chunk), (void *)a);
	if (!a->dgain) return;
	for (int c = 0; c < chunks; c++) {
		const float *part = a->partial + c * a->d;
		ROW_LOOP(a->d, i, k) { STOREK(a->dgain + i, vadd(LOADK(a->dgain + i, k), LOADK(part + i, k)), k); }
	}
}
