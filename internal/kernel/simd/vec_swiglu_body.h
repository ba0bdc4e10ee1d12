// SwiGLU: y = u*sigma(u)*v with gate u and up v side by side in rows of 2F.

enum { ACT(swiglu_rows) = 8 };

static void ACT(swiglu_chunk)(void *arg, int chunk, int thread) {
	const dl_swiglu_args *a = arg;
	(void)thread;
	const int64_t f = a->f, r0 = (int64_t)chunk * ACT(swiglu_rows), r1 = r0 + ACT(swiglu_rows) < a->m ? r0 + ACT(swiglu_rows) : a->m;
	const vf one = vset1(1);
	for (int64_t r = r0; r < r1; r++) {
		const act *gu = (const act *)a->gu + 2 * r * f;
		act *y = (act *)a->y + r * f;
		ROW_LOOP(f, i, k) {
			vf u = AK(gu + i, k), v = AK(gu + f + i, k);
			vf e = vexp(vsub(vzero(), u));
			SK(y + i, vmul(vmul(u, vrecip(vadd(one, e))), v), k);
		}
	}
}

void ACT(dl_swiglu)(dl_pool *p, const dl_swiglu_args *a) {
	dl_parallel(p, (int)((a->m + ACT(swiglu_rows) - 1) / ACT(swiglu_rows)), ACT(swiglu_chunk), (void *)a);
}

// du = dy*v*sigma*(1 + u*(1-sigma)), dv = dy*u*sigma; 1-sigma is taken as
// sigma*e^-u, which keeps its digits for large u.
static void ACT(swiglu_back_chunk)(void *arg, int chunk, int thread) {
	const dl_swiglu_args *a = arg;
	(void)thread;
	const int64_t f = a->f, r0 = (int64_t)chunk * ACT(swiglu_rows), r1 = r0 + ACT(swiglu_rows) < a->m ? r0 + ACT(swiglu_rows) : a->m;
	const vf one = vset1(1);
	for (int64_t r = r0; r < r1; r++) {
		const act *gu = (const act *)a->gu + 2 * r * f, *dy = (const act *)a->y + r * f;
		act *dgu = (act *)a->dgu + 2 * r * f;
		ROW_LOOP(f, i, k) {
			vf u = AK(gu + i, k), v = AK(gu + f + i, k), g = AK(dy + i, k);
			vf e = vexp(vsub(vzero(), u));
			vf sig = vrecip(vadd(one, e));
			vf gs = vmul(g, sig);
			SK(dgu + i, vmul(vmul(gs, v), vfma(u, vmul(sig, e), one)), k);
			SK(dgu + f + i, vmul(gs, u), k);
		}
	}
}

void ACT(dl_swiglu_back)(dl_pool *p, const dl_swiglu_args *a) {
	dl_parallel(p, (int)((a->m + ACT(swiglu_rows) - 1) / ACT(swiglu_rows)), ACT(swiglu_back_chunk), (void *)a);
}
