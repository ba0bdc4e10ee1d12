// Attention of a few new positions over cached keys and values: what generating
// text does, one position at a time, where all time goes into reading the
// cache. A chunk is a head and a block of queries. Scores of all keys, softmax,
// then the weighted sum of values, so that keys and values are read once each
// for a block, in the order they lie in memory.

#ifndef DL_CACHED_ONCE
#define DL_CACHED_ONCE
// Queries in a block, and keys taken together for a single one.
enum { CACHED_QUERIES = VL == 16 ? 4 : 2, CACHED_KEYS = 4 };

// cached_softmax turns n scores at s into e^(scale*(s - max)), zeros up to end,
// and returns their sum.
static float DL_NAME(cached_softmax)(float *s, int n, int end, float scale) {
	vf top = vset1(-INFINITY), sum = vzero();
	int j = 0;
	for (; j + VL <= n; j += VL) top = vmax(vload(s + j), top);
	float most = vmaxall(top);
	for (; j < n; j++) most = s[j] > most ? s[j] : most;
	const vf shift = vset1(-most * scale), c = vset1(scale);
	for (j = 0; j + VL <= n; j += VL) {
		const vf e = vexp(vfma(vload(s + j), c, shift));
		vstore(s + j, e);
		sum = vadd(sum, e);
	}
	if (j < n) {
		float last[VL] = {0};
		vstore_n(s + j, vexp(vfma(vload_n(s + j, n - j), c, shift)), n - j);
		vstore_n(last, vload_n(s + j, n - j), n - j);
		sum = vadd(sum, vload(last));
	}
	for (j = n; j < end; j++) s[j] = 0;
	return vsum(sum);
}
#endif

// turn_ reads a row of k activations, rotated to a position where there are
// tables, and stores it as float or activations.
#define TURN_(dst, store, src, a, position)                                                                                  \
	do {                                                                                                                        \
		const int64_t half_ = (a)->k / 2;                                                                                          \
		if (!(a)->cos) {                                                                                                           \
			ROW_LOOP((a)->k, i_, m_) { store((dst) + i_, AK((src) + i_, m_), m_); }                                                   \
		} else {                                                                                                                   \
			const float *cos_ = (a)->cos + (position)*half_, *sin_ = (a)->sin + (position)*half_;                                     \
			ROW_LOOP(half_, i_, m_) {                                                                                                 \
				const vf x_ = AK((src) + i_, m_), y_ = AK((src) + half_ + i_, m_), c_ = LOADK(cos_ + i_, m_), s_ = LOADK(sin_ + i_, m_); \
				store((dst) + i_, vsub(vmul(x_, c_), vmul(y_, s_)), m_);                                                                 \
				store((dst) + half_ + i_, vfma(y_, c_, vmul(x_, s_)), m_);                                                               \
			}                                                                                                                         \
		}                                                                                                                          \
	} while (0)

// cached_append puts the new keys and values of head h into the caches.
static void ACT(cached_append)(const dl_cached_args *a, int64_t h) {
	const int64_t k = a->k, width = a->n * k;
	for (int64_t t = 0; t < a->t; t++) {
		const act *src = (const act *)a->qkv + t * 3 * width + width + h * k;
		const int64_t at = a->past + t;
		act *key = (act *)a->keys + (h * a->ctx + at) * k, *value = (act *)a->values + (h * a->ctx + at) * k;
		TURN_(key, SK, src, a, at);
		memcpy(value, src + width, (size_t)k * sizeof(act));
	}
}

static void ACT(cached_append_chunk)(void *arg, int chunk, int thread) {
	(void)thread;
	ACT(cached_append)(arg, chunk);
}

// cached_scores: s[i][j] = q_i·k_j for nq queries and nk keys, at constants.
DL_INLINE void ACT(cached_scores)(float *s, int64_t lds, const float *q, int64_t ldq, const act *keys, int64_t k, const int nq, const int nk) {
	vf sum[CACHED_QUERIES][CACHED_KEYS];
	for (int i = 0; i < nq; i++)
		for (int j = 0; j < nk; j++) sum[i][j] = vzero();
	ROW_LOOP(k, d, m) {
		vf y[CACHED_KEYS];
		EACH(j, nk) y[j] = AK(keys + j * k + d, m);
		EACH(i, nq) {
			const vf x = vload(q + i * ldq + d);
			EACH(j, nk) sum[i][j] = vfma(x, y[j], sum[i][j]);
		}
	}
	EACH(i, nq) EACH(j, nk) s[i * lds + j] = vsum(sum[i][j]);
}

// cached_values: o_i = weight_i Σ_j p[i][j] v_j, elements d on, nv vectors of
// which the last (and only) one may be partial, m elements.
DL_INLINE void ACT(cached_values)(act *o, int64_t ldo, const float *p, int64_t ldp, const act *values, int64_t k, int n, const float *weight, const int nq,
                                  int64_t d, const int nv, int m) {
	vf sum[CACHED_QUERIES][VECS];
	EACH(i, nq) EACH(j, nv) sum[i][j] = vzero();
	for (int t = 0; t < n; t++) {
		vf v[VECS];
		alds(v, values + t * k + d, nv, m);
		EACH(i, nq) {
			const vf w = vset1(p[i * ldp + t]);
			EACH(j, nv) sum[i][j] = vfma(w, v[j], sum[i][j]);
		}
	}
	EACH(i, nq) {
		EACH(j, nv) sum[i][j] = vmul(sum[i][j], vset1(weight[i]));
		asts(o + i * ldo + d, sum[i], nv, m);
	}
}

// cached_block: queries t0 to t0+nq of head h.
DL_INLINE void ACT(cached_block)(const dl_cached_args *a, int64_t h, int64_t t0, float *mem, const int nq) {
	const int64_t k = a->k, width = a->n * k, kd = (k + VL - 1) / VL * VL;
	const int seen = (int)(a->past + t0 + nq);
	const int64_t lds = (seen + VL - 1) / VL * VL;
	float *q = mem, *s = mem + nq * kd, weight[CACHED_QUERIES];
	const act *keys = (const act *)a->keys + h * a->ctx * k, *values = (const act *)a->values + h * a->ctx * k;
	act *o = (act *)a->o + t0 * width + h * k;
	memset(q, 0, (size_t)(nq * kd) * sizeof(float));
	for (int i = 0; i < nq; i++) {
		const act *src = (const act *)a->qkv + (t0 + i) * 3 * width + h * k;
		TURN_(q + i * kd, STOREK, src, a, a->past + t0 + i);
	}
	const int together = nq == 1 ? CACHED_KEYS : 1;
	int j = 0;
	for (; j + together <= seen; j += together) ACT(cached_scores)(s + j, lds, q, kd, keys + j * k, k, nq, nq == 1 ? CACHED_KEYS : 1);
	for (; j < seen; j++) ACT(cached_scores)(s + j, lds, q, kd, keys + j * k, k, nq, 1);
	const float scale = 1.0f / sqrtf((float)k);
	for (int i = 0; i < nq; i++) weight[i] = 1.0f / DL_NAME(cached_softmax)(s + i * lds, (int)(a->past + t0) + i + 1, seen, scale);
	BY_GROUPS(0, k, ACT(cached_values), o, width, s, lds, values, k, seen, weight, nq);
}

static void ACT(cached_chunk)(void *arg, int chunk, int thread) {
	const dl_cached_args *a = arg;
	const int64_t blocks = (a->t + CACHED_QUERIES - 1) / CACHED_QUERIES, h = chunk / blocks, t1 = (chunk % blocks + 1) * CACHED_QUERIES;
	int64_t t = t1 - CACHED_QUERIES;
	float *mem = dl_scratch(a->pool, thread, (size_t)(CACHED_QUERIES * (a->k + a->past + a->t + 2 * VL)) * sizeof(float));
	if (blocks == 1) ACT(cached_append)(a, h);
	if (t1 <= a->t) {
		ACT(cached_block)(a, h, t, mem, CACHED_QUERIES);
		return;
	}
	for (; t < a->t; t++) ACT(cached_block)(a, h, t, mem, 1);
}

void ACT(dl_attn_cached)(dl_pool *p, const dl_cached_args *a) {
	const int64_t blocks = (a->t + CACHED_QUERIES - 1) / CACHED_QUERIES;
	if (!a->o || blocks > 1) dl_parallel(p, (int)a->n, ACT(cached_append_chunk), (void *)a);
	if (a->o) dl_parallel(p, (int)(a->n * blocks), ACT(cached_chunk), (void *)a);
}

#undef TURN_
