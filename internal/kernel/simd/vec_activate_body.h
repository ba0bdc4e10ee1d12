// Activations of one argument, element by element, and their derivatives.
//
//	GELU, tanh form  x*sigma(2u), u = sqrt(2/pi)*(x + 0.044715*x^3)
//	GELU, exact      x*Phi(x), Phi the normal distribution function
//	ReLU squared     max(x, 0)^2
//
// Beyond |x| = 16 sigma(2u) and Phi(x) are 0 or 1 to float precision, so what
// goes into them is cut off there and nothing overflows.

#ifndef DL_ACTIVATE_ONCE
#define DL_ACTIVATE_ONCE
DL_INLINE vf DL_NAME(within_)(vf x) { return vmax(vset1(-16), vmin(vset1(16), x)); }

// gelu_gate: s = sigma(2u) and rest = 1 - s for the tanh form, rest as
// s*e^-2u, which keeps its digits. x is within_.
DL_INLINE void DL_NAME(gelu_gate)(vf *s, vf *rest, const vf *x, int n) {
	vf e[VECS];
	EACH(j, n) e[j] = vmul(x[j], vfma(vmul(x[j], x[j]), vset1(-0.0713548163f), vset1(-1.59576912f)));
	vexps(e, n);
	EACH(j, n) s[j] = vrecip(vadd(vset1(1), e[j]));
	EACH(j, n) rest[j] = vmul(s[j], e[j]);
}

// normal_: p = Phi(x) and e = e^(-x^2/2). With t = 1/(1 + 0.35|x|), Phi(-|x|) =
// t*P(t)*e, P a polynomial fitted on [0, 14], relative error 3e-8. x is within_.
DL_INLINE void DL_NAME(normal_)(vf *p, vf *e, const vf *x, int n) {
	static const float c[] = {0.143971952f, -0.255714772f, 0.159174741f, -0.0231102263f, 0.105508166f, 0.119832828f, 0.139861875f, 0.139621404f};
	vf t[VECS];
	EACH(j, n) t[j] = vrecip(vfma(vmax(vsub(vzero(), x[j]), x[j]), vset1(0.35f), vset1(1)));
	EACH(j, n) e[j] = vmul(vmul(x[j], x[j]), vset1(-0.5f));
	vexps(e, n);
	EACH(j, n) p[j] = vset1(-0.0291459833f);
#pragma GCC unroll 8
	for (int i = 0; i < 8; i++) EACH(j, n) p[j] = vfma(p[j], t[j], vset1(c[i]));
	EACH(j, n) p[j] = vmul(vmul(p[j], t[j]), e[j]);
	EACH(j, n) p[j] = vsel_gt(x[j], vzero(), vsub(vset1(1), p[j]), p[j]);
}
#endif

DL_INLINE void ACT(gelu_step)(act *y, const act *x, int64_t i, int n, int k) {
	vf v[VECS], u[VECS], s[VECS], rest[VECS];
	alds(v, x + i, n, k);
	EACH(j, n) u[j] = DL_NAME(within_)(v[j]);
	DL_NAME(gelu_gate)(s, rest, u, n);
	EACH(j, n) v[j] = vmul(v[j], s[j]);
	asts(y + i, v, n, k);
}

DL_INLINE void ACT(gelu_erf_step)(act *y, const act *x, int64_t i, int n, int k) {
	vf v[VECS], u[VECS], p[VECS], e[VECS];
	alds(v, x + i, n, k);
	EACH(j, n) u[j] = DL_NAME(within_)(v[j]);
	DL_NAME(normal_)(p, e, u, n);
	EACH(j, n) v[j] = vmul(v[j], p[j]);
	asts(y + i, v, n, k);
}

DL_INLINE void ACT(relu2_step)(act *y, const act *x, int64_t i, int n, int k) {
	vf v[VECS];
	alds(v, x + i, n, k);
	EACH(j, n) v[j] = vmax(vzero(), v[j]); // NaN stays NaN
	EACH(j, n) v[j] = vmul(v[j], v[j]);
	asts(y + i, v, n, k);
}

// s + x*s*(1-s)*(2u)'
DL_INLINE void ACT(gelu_back_step)(act *dx, const act *dy, const act *x, int64_t i, int n, int k) {
	vf v[VECS], g[VECS], s[VECS], rest[VECS];
	alds(v, x + i, n, k);
	EACH(j, n) v[j] = DL_NAME(within_)(v[j]);
	DL_NAME(gelu_gate)(s, rest, v, n);
	EACH(j, n) rest[j] = vmul(rest[j], vmul(v[j], vfma(vmul(v[j], v[j]), vset1(0.214064449f), vset1(1.59576912f))));
	alds(g, dy + i, n, k);
	EACH(j, n) g[j] = vmul(g[j], vfma(s[j], rest[j], s[j]));
	asts(dx + i, g, n, k);
}

// Phi(x) + x*e^(-x^2/2)/sqrt(2 pi)
DL_INLINE void ACT(gelu_erf_back_step)(act *dx, const act *dy, const act *x, int64_t i, int n, int k) {
	vf v[VECS], g[VECS], p[VECS], e[VECS];
	alds(v, x + i, n, k);
	EACH(j, n) v[j] = DL_NAME(within_)(v[j]);
	DL_NAME(normal_)(p, e, v, n);
	alds(g, dy + i, n, k);
	EACH(j, n) g[j] = vmul(g[j], vfma(vmul(v[j], vset1(0.398942280f)), e[j], p[j]));
	asts(dx + i, g, n, k);
}

DL_INLINE void ACT(relu2_back_step)(act *dx, const act *dy, const act *x, int64_t i, int n, int k) {
	vf v[VECS], g[VECS];
	alds(v, x + i, n, k);
	alds(g, dy + i, n, k);
	EACH(j, n) v[j] = vmul(vset1(2), vmax(vzero(), v[j]));
	EACH(j, n) g[j] = vmul(g[j], v[j]);
	asts(dx + i, g, n, k);
}

static void ACT(activate_chunk)(void *arg, int chunk, int thread) {
	const dl_activate_args *a = arg;
	(void)thread;
	const act *x = a->x;
	act *y = a->y;
	switch (a->kind) {
	case DL_GELU: BY_GROUPS(FLAT_FROM(chunk), FLAT_TO(chunk, a->n), ACT(gelu_step), y, x); break;
	case DL_GELU_ERF: BY_GROUPS(FLAT_FROM(chunk), FLAT_TO(chunk, a->n), ACT(gelu_erf_step), y, x); break;
	default: BY_GROUPS(FLAT_FROM(chunk), FLAT_TO(chunk, a->n), ACT(relu2_step), y, x);
	}
}

void ACT(dl_activate)(dl_pool *p, const dl_activate_args *a) {
	dl_parallel(p, DL_NAME(flat_chunks)(a->n), ACT(activate_chunk), (void *)a);
}

static void ACT(activate_back_chunk)(void *arg, int chunk, int thread) {
	const dl_activate_args *a = arg;
	(void)thread;
	const act *x = a->x, *dy = a->dy;
	act *dx = a->y;
	switch (a->kind) {
	case DL_GELU: BY_GROUPS(FLAT_FROM(chunk), FLAT_TO(chunk, a->n), ACT(gelu_back_step), dx, dy, x); break;
	case DL_GELU_ERF: BY_GROUPS(FLAT_FROM(chunk), FLAT_TO(chunk, a->n), ACT(gelu_erf_back_step), dx, dy, x); break;
	default: BY_GROUPS(FLAT_FROM(chunk), FLAT_TO(chunk, a->n), ACT(relu2_back_step), dx, dy, x);
	}
}

void ACT(dl_activate_back)(dl_pool *p, const dl_activate_args *a) {
	dl_parallel(p, DL_NAME(flat_chunks)(a->n), ACT(activate_back_chunk), (void *)a);
}
