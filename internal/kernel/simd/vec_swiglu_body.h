// SwiGLU: y = u*sigma(u)*v with gate u and up v side by side in rows of 2F.

enum { ACT(swiglu_rows) = 8 };

// swiglu_ahead asks for the same elements of the next row: two streams in one
// block of memory, which the processor does not guess well.
DL_INLINE void ACT(swiglu_ahead)(const act *gate, const act *up, int n) {
	const int64_t row = 2 * (up - gate) * (int64_t)sizeof(act);
	for (int b = 0; b < n * VL * (int)sizeof(act); b += 64) {
		__builtin_prefetch((const char *)gate + row + b);
		__builtin_prefetch((const char *)up + row + b);
	}
}

// swiglu_load: n vectors of the gate u and of the up v, e^-u and sigma(u).
DL_INLINE void ACT(swiglu_load)(vf *u, vf *v, vf *s, vf *e, const act *gate, const act *up, int n, int k) {
	ACT(swiglu_ahead)(gate, up, n);
	alds(u, gate, n, k);
	alogistics(s, e, u, n);
	alds(v, up, n, k);
}

DL_INLINE void ACT(swiglu_step)(act *y, const act *gate, const act *up, int64_t i, int n, int k) {
	vf u[VECS], v[VECS], e[VECS], s[VECS];
	ACT(swiglu_load)(u, v, s, e, gate + i, up + i, n, k);
	EACH(j, n) v[j] = vmul(vmul(u[j], s[j]), v[j]);
	asts(y + i, v, n, k);
}

static void ACT(swiglu_chunk)(void *arg, int chunk, int thread) {
	const dl_swiglu_args *a = arg;
	(void)thread;
	const int64_t f = a->f, r0 = (int64_t)chunk * ACT(swiglu_rows), r1 = r0 + ACT(swiglu_rows) < a->m ? r0 + ACT(swiglu_rows) : a->m;
	for (int64_t r = r0; r < r1; r++) {
		const act *gu = (const act *)a->gu + 2 * r * f;
		BY_GROUPS(0, f, ACT(swiglu_step), (act *)a->y + r * f, gu, gu + f);
	}
}

void ACT(dl_swiglu)(dl_pool *p, const dl_swiglu_args *a) {
	dl_parallel(p, (int)((a->m + ACT(swiglu_rows) - 1) / ACT(swiglu_rows)), ACT(swiglu_chunk), (void *)a);
}

// du = dy*v*sigma*(1 + u*(1-sigma)), dv = dy*u*sigma; 1-sigma is taken as
// sigma*e^-u, which keeps its digits for large u.
DL_INLINE void ACT(swiglu_back_step)(act *d_gate, act *d_up, const act *dy, const act *gate, const act *up, int64_t i, int n, int k) {
	vf u[VECS], v[VECS], g[VECS], e[VECS], s[VECS];
	ACT(swiglu_load)(u, v, s, e, gate + i, up + i, n, k);
	alds(g, dy + i, n, k);
	EACH(j, n) g[j] = vmul(g[j], s[j]);
	EACH(j, n) v[j] = vmul(vmul(g[j], v[j]), vfma(u[j], vmul(s[j], e[j]), vset1(1)));
	asts(d_gate + i, v, n, k);
	EACH(j, n) u[j] = vmul(g[j], u[j]);
	asts(d_up + i, u, n, k);
}

static void ACT(swiglu_back_chunk)(void *arg, int chunk, int thread) {
	const dl_swiglu_args *a = arg;
	(void)thread;
	const int64_t f = a->f, r0 = (int64_t)chunk * ACT(swiglu_rows), r1 = r0 + ACT(swiglu_rows) < a->m ? r0 + ACT(swiglu_rows) : a->m;
	for (int64_t r = r0; r < r1; r++) {
		const act *gu = (const act *)a->gu + 2 * r * f;
		act *dgu = (act *)a->dgu + 2 * r * f;
		BY_GROUPS(0, f, ACT(swiglu_back_step), dgu, dgu + f, (const act *)a->y + r * f, gu, gu + f);
	}
}

void ACT(dl_swiglu_back)(dl_pool *p, const dl_swiglu_args *a) {
	dl_parallel(p, (int)((a->m + ACT(swiglu_rows) - 1) / ACT(swiglu_rows)), ACT(swiglu_back_chunk), (void *)a);
}
