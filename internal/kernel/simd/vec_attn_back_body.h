// Backward of attention. A chunk is some keys of one head: a block of them at
// a time against all queries, a group of queries at a time. The plain loop, for
// each query i and key j of a head, with δ_i = do_i·o_i:
//
//	p = e^(q_i·k_j/√K - lse_i),  ds = p (do_i·v_j - δ_i)
//	dv_j += p do_i,  dk_j += ds q_i/√K,  dq_i += ds k_j/√K
//
// p and ds exist for one block and group only. dk and dv of a block add up in
// scratch; dq adds up over blocks, transposed, and over chunks in the order of
// their numbers.

#ifndef DL_ATTN_BACK_ONCE
#define DL_ATTN_BACK_ONCE
enum {
	GROUP = 112 / VL, // vectors of queries in a group
	STRIP = 32,       // keys whose scores exist at a time
};
#endif

// dq_out finishes n queries of dq, position i0 on: [rows][nq] in each of
// `parts` partial sums, `apart` words apart.
static void ACT(dq_out)(ACT(rows) to, float *dq, int parts, int64_t apart, int nq, int i0, int n, float *temp, const DL_NAME(attn_sizes) *z,
                        const dl_attn_args *a) {
	const int64_t all = (int64_t)z->rows * nq;
	for (int p = 1; p < parts; p++)
		for (int64_t i = 0; i < all; i += VL) vstore(dq + i, vadd(vload(dq + i), vload(dq + p * apart + i)));
	for (int v = 0; v < n; v += VL) {
		DL_NAME(flip_out)(temp, z, dq + v, nq, vset1(1.0f / sqrtf((float)a->k)));
		ACT(rows_out)(ACT(rows_at)(to, i0 + v), temp, z->kd, i0 + v, dl_min(VL, n - v), a, 1, 1);
	}
}

// query_stats fills lse and δ of n queries in the form that grad wants. The
// rows of next come to use after this.
static void ACT(query_stats)(float *lse, float *delta, const float *from, ACT(rows) d_o, ACT(rows) o, ACT(rows) next, int n, int k) {
	for (int i = 0; i < n; i++, d_o.p += d_o.stride, o.p += o.stride, next.p += next.stride) {
		vf sum = vzero();
		for (int c = 0; c < k; c += 64 / (int)sizeof(act)) __builtin_prefetch(next.p + c, 1, 2);
		ROW_LOOP(k, c, m) { sum = vfma(AK(o.p + c, m), AK(d_o.p + c, m), sum); }
		delta[i] = vsum(sum);
		lse[i] = from[i] * 1.44269504f;
	}
}

// times_queries adds a · b to sums[m][kd] over the n queries of a group; a has
// ld elements in a row. Before query `blind` all is zero for the first key, one
// query later for the next and so on. The rows of next come to use after this.
static void ACT(times_queries)(float *sums, const DL_NAME(attn_sizes) *z, const el *a, int64_t ld, const float *b, int m, int n, int blind, ACT(rows) next, int k) {
	for (int i = 0; i < m; i += STRIP) {
		const int r = dl_min(STRIP, m - i), q0 = blind + i > 0 ? (blind + i) / PER * PER : 0;
		for (int j = i; next.p && j < i + r; j++)
			for (int c = 0; c < k; c += 64 / (int)sizeof(act)) __builtin_prefetch(next.p + j * next.stride + c, 1, 2);
		for (int c = 0; c < z->kd;) {
			const int vecs = DL_NAME(half_width)(k - c), width = DL_NAME(mul_width)(k - c, vecs);
			DL_NAME(mul)(sums + (int64_t)i * z->kd + c, z->kd, (DL_NAME(left)){(const float *)(a + i * ld + q0), ld / PER, 1}, b + q0 / PER * z->kd + c, z->kd, r, width, (n - q0 + PER - 1) / PER, 1, NULL);
			c += vecs * VL;
		}
	}
}

static void ACT(attn_back_chunk)(void *arg, int chunk, int thread) {
	const dl_attn_args *a = arg;
	const DL_NAME(attn_sizes) z = DL_NAME(attn_sizes_of)(a, a->t);
	const int head = chunk / z.parts, b = head / a->n, h = head % a->n, t = a->t, k = a->k;
	const int p0 = chunk % z.parts * z.part, p1 = dl_min(p0 + z.part, t);
	const int64_t width = (int64_t)a->n * k, wide = MUL_VECS * VL, lanes = GROUP * VL;
	const float scale = 1.0f / sqrtf((float)k), c = 1.44269504f * scale;
	const int64_t pl = dl_up(z.part, VL), nr = pl * z.ldr, ni = pl / PER * z.kd, nf = (int64_t)z.tp * z.w, nt = (int64_t)z.tp / PER * z.kd;
	const int64_t sums = (int64_t)z.keys * z.kd, grads = z.keys * lanes, nq_all = (int64_t)z.tp * z.rows;
	float *mem = dl_scratch(a->pool, thread, (size_t)(2 * nr + ni + 2 * nf + 2 * nt + 2 * z.tp + nq_all + 2 * sums + 3 * grads + 2 * STRIP * wide + VL * (z.ldr + z.kd) + 512) * sizeof(float));
	float *kr = dl_take(&mem, nr), *vr = dl_take(&mem, nr), *ki = PER == 2 ? dl_take(&mem, ni) : kr;
	float *qf = dl_take(&mem, nf), *df = dl_take(&mem, nf), *qi = dl_take(&mem, nt), *di = dl_take(&mem, nt);
	float *lse = dl_take(&mem, z.tp), *delta = dl_take(&mem, z.tp), *dk = dl_take(&mem, sums), *dv = dl_take(&mem, sums);
	el *pn = (el *)dl_take(&mem, grads), *dn = (el *)dl_take(&mem, grads);
	float *dp = PER == 2 ? dl_take(&mem, grads) : (float *)dn;
	float *s = dl_take(&mem, STRIP * wide), *g = dl_take(&mem, STRIP * wide), *temp = dl_take(&mem, VL * z.ldr), *rows = dl_take(&mem, VL * z.kd);
	float *dq = z.parts > 1 ? a->dq + chunk * nq_all : dl_take(&mem, nq_all);
	act *in = (act *)a->qkv + (int64_t)b * t * 3 * width + (int64_t)h * k, *out = (act *)a->dqkv + (int64_t)b * t * 3 * width + (int64_t)h * k;
	const ACT(rows) qs = {in, 3 * width}, ks = {in + width, 3 * width}, vs = {in + 2 * width, 3 * width}, none = {NULL, 0};
	const ACT(rows) dqs = {out, 3 * width}, dks = {out + width, 3 * width}, dvs = {out + 2 * width, 3 * width};
	const ACT(rows) os = {(act *)a->o + (int64_t)b * t * width + (int64_t)h * k, width}, dos = {(act *)a->d_o + (int64_t)b * t * width + (int64_t)h * k, width};

	ACT(pack)(kr, NULL, 0, PER == 2 ? ki : NULL, NULL, &z, ACT(rows_at)(ks, p0), ACT(rows_at)(vs, p0), p0, p1 - p0, a, 1);
	ACT(pack)(vr, NULL, 0, NULL, NULL, &z, ACT(rows_at)(vs, p0), ACT(rows_at)(qs, p0), p0, p1 - p0, a, 0);
	memset(lse + z.tp - VL, 0, VL * sizeof(float));
	memset(delta + z.tp - VL, 0, VL * sizeof(float));
	for (int k0 = p0; k0 < p1; k0 += z.keys) {
		const int m = dl_min(z.keys, p1 - k0);
		const float *kb = kr + (int64_t)(k0 - p0) * z.ldr, *vb = vr + (int64_t)(k0 - p0) * z.ldr, *kc = ki + (int64_t)(k0 - p0) / PER * z.kd;
		memset(dk, 0, (size_t)sums * sizeof(float));
		memset(dv, 0, (size_t)sums * sizeof(float));
		for (int g0 = 0, gl; g0 < t; g0 += gl) {
			gl = DL_NAME(next_width)((z.tp - g0) / VL, GROUP) * VL;
			const int gn = dl_min(gl, t - g0), most = a->causal ? dl_min(m, g0 + gn - k0) : m; // keys that the group sees
			if (most <= 0) continue;
			for (int i0 = g0, nq; i0 < g0 + gl; i0 += nq) {
				const int vecs = DL_NAME(half_width)(dl_min(g0 + gl, t) - i0), at = i0 - g0;
				nq = vecs * VL;
				const int n = dl_min(nq, t - i0), mv = DL_NAME(mul_width)(n, vecs), seen = a->causal ? dl_min(m, i0 + n - k0) : m;
				float *qb = qf + (int64_t)i0 * z.w, *db = df + (int64_t)i0 * z.w, *dqb = dq + (int64_t)i0 * z.rows;
				if (k0 == p0) {
					ACT(pack)(NULL, qb, nq, qi + (int64_t)i0 / PER * z.kd, temp, &z, ACT(rows_at)(qs, i0), ACT(rows_at)(dos, i0), i0, n, a, 1);
					ACT(pack)(NULL, db, nq, di + (int64_t)i0 / PER * z.kd, temp, &z, ACT(rows_at)(dos, i0), ACT(rows_at)(os, i0), i0, n, a, 0);
					ACT(query_stats)(lse + i0, delta + i0, a->lse + (int64_t)head * t + i0, ACT(rows_at)(dos, i0), ACT(rows_at)(os, i0), ACT(rows_at)(dqs, i0), n, k);
				}
				for (int j = 0; j < most; j += STRIP) {
					const int r = dl_min(STRIP, dl_up(most - j, 2));
					el *pj = pn + j * gl + at, *dj = dn + j * gl + at;
					if (j >= seen) { // after all queries of the block
						for (int i = 0; i < r; i++) {
							memset(pj + i * gl, 0, (size_t)nq * sizeof(el));
							memset(dj + i * gl, 0, (size_t)nq * sizeof(el));
						}
						continue;
					}
					DL_NAME(mul)(s, nq, (DL_NAME(left)){kb + (int64_t)j * z.ldr, z.ldr, 1}, qb, nq, r, mv, z.w, 0, NULL);
					DL_NAME(mul)(g, nq, (DL_NAME(left)){vb + (int64_t)j * z.ldr, z.ldr, 1}, db, nq, r, mv, z.w, 0, NULL);
					if (j + r > m || (a->causal && k0 + j + r > i0)) DL_NAME(mask)(s, nq, r, vecs, m - j, a->causal, k0 + j, i0);
					DL_NAME(grad)(pj, dj, gl, dp + (int64_t)j / PER * gl + at, gl, s, g, nq, r, vecs, c, lse + i0, delta + i0);
				}
				if (seen <= 0) continue;
				DL_NAME(mul)(dqb, nq, (DL_NAME(left)){kc, 1, z.kd}, dp + at, gl, k, mv, (seen + PER - 1) / PER, k0 > p0, NULL);
				const int next = k0 + z.keys;
				if (z.parts == 1 && (next >= t || (a->causal && next >= i0 + n))) ACT(dq_out)(dqs, dqb, 1, 0, nq, i0, n, rows, &z, a);
			}
			const int end = g0 + gl >= t, blind = a->causal ? k0 - g0 : -m;
			ACT(times_queries)(dv, &z, pn, gl, di + (int64_t)g0 / PER * z.kd, most, gn, blind, end ? ACT(rows_at)(dvs, k0) : none, k);
			ACT(times_queries)(dk, &z, dn, gl, qi + (int64_t)g0 / PER * z.kd, most, gn, blind, end ? ACT(rows_at)(dks, k0) : none, k);
		}
		ACT(rows_out)(ACT(rows_at)(dks, k0), dk, z.kd, k0, m, a, 1, scale);
		ACT(rows_out)(ACT(rows_at)(dvs, k0), dv, z.kd, k0, m, a, 0, 1);
	}
}

// dq_chunk adds up the parts of one head.
static void ACT(dq_chunk)(void *arg, int head, int thread) {
	const dl_attn_args *a = arg;
	const DL_NAME(attn_sizes) z = DL_NAME(attn_sizes_of)(a, a->t);
	const int t = a->t;
	const int64_t width = (int64_t)a->n * a->k, apart = (int64_t)z.tp * z.rows;
	float *rows = dl_scratch(a->pool, thread, (size_t)(VL * z.kd) * sizeof(float));
	const ACT(rows) dqs = {(act *)a->dqkv + (int64_t)(head / a->n) * t * 3 * width + (int64_t)(head % a->n) * a->k, 3 * width};
	for (int g0 = 0, gl; g0 < t; g0 += gl) {
		gl = DL_NAME(next_width)((z.tp - g0) / VL, GROUP) * VL;
		for (int i0 = g0, nq; i0 < g0 + gl; i0 += nq) {
			nq = DL_NAME(half_width)(dl_min(g0 + gl, t) - i0) * VL;
			const int n = dl_min(nq, t - i0), parts = a->causal ? dl_min(z.parts, (i0 + n - 1) / z.part + 1) : z.parts;
			ACT(dq_out)(dqs, a->dq + head * z.parts * apart + i0 * z.rows, parts, apart, nq, i0, n, rows, &z, a);
		}
	}
}

void ACT(dl_attn_back)(dl_pool *p, const dl_attn_args *given) {
	dl_attn_args a = *given;
	const DL_NAME(attn_sizes) z = DL_NAME(attn_sizes_of)(&a, a.t);
	const int heads = a.b * a.n;
	if (z.parts > 1) a.dq = dl_shared(p, DL_SLOT_A, (size_t)heads * (size_t)z.parts * (size_t)z.tp * (size_t)z.rows * sizeof(float));
	dl_parallel(p, heads * z.parts, ACT(attn_back_chunk), &a);
	if (z.parts > 1) dl_parallel(p, heads, ACT(dq_chunk), &a);
}
