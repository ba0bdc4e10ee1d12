// Embed: rows of a table, puzzle slots in front, positions, scale. The plain
// loop, for each batch row b and position p:
//
//	y[b,p,:] = scale * ((p < prefix ? slot p of puzzle b : table[ids[b, p-prefix]]) + pos[p])

enum { ACT(embed_rows) = 32 };

// slot_ returns what of batch row i's puzzle vector lies at position p: *n
// elements, perhaps none.
DL_INLINE float *ACT(slot_)(const dl_embed_args *a, int64_t i, int64_t p, int64_t *n) {
	int64_t left = a->puzzle ? a->puzzle_dim - p * a->d : 0;
	*n = left < 0 ? 0 : left < a->d ? left : a->d;
	return *n ? a->puzzle + i * a->puzzle_dim + p * a->d : NULL;
}

DL_INLINE void ACT(embed_step)(act *y, const float *src, const float *pos, vf scale, int64_t i, int n, int k) {
	vf v[VECS], q[VECS];
	if (src) vloads(v, src + i, n, k);
	else EACH(j, n) v[j] = vzero();
	if (pos) {
		vloads(q, pos + i, n, k);
		EACH(j, n) v[j] = vadd(v[j], q[j]);
	}
	EACH(j, n) v[j] = vmul(v[j], scale);
	asts(y + i, v, n, k);
}

static void ACT(embed_chunk)(void *arg, int chunk, int thread) {
	const dl_embed_args *a = arg;
	(void)thread;
	const int64_t d = a->d, per = a->prefix + a->t, rows = a->batch * per, r0 = (int64_t)chunk * ACT(embed_rows);
	const int64_t r1 = r0 + ACT(embed_rows) < rows ? r0 + ACT(embed_rows) : rows;
	const vf scale = vset1(a->scale);
	for (int64_t r = r0; r < r1; r++) {
		const int64_t b = r / per, p = r % per;
		int64_t n = d;
		const float *src;
		if (p < a->prefix) src = ACT(slot_)(a, b, p, &n);
		else src = a->table + a->ids[b * a->t + p - a->prefix] * d;
		const float *pos = a->pos ? a->pos + p * d : NULL;
		act *y = (act *)a->y + r * d;
		BY_GROUPS(0, n, ACT(embed_step), y, src, pos, scale);
		if (n < d) BY_GROUPS(n, d, ACT(embed_step), y, NULL, pos, scale);
	}
}

void ACT(dl_embed)(dl_pool *p, const dl_embed_args *a) {
	const int64_t rows = a->batch * (a->prefix + a->t);
	dl_parallel(p, (int)((rows + ACT(embed_rows) - 1) / ACT(embed_rows)), ACT(embed_chunk), (void *)a);
}

// EmbedBackward: scale*dy is added to the table's rows and positions, and put
// into the slots. A chunk owns some columns of every gradient, so that no two
// add to one element and the order of sums is that of the rows.
typedef struct {
	const dl_embed_args *a;
	int64_t cols;
} ACT(embed_back_call);

static void ACT(embed_back_chunk)(void *arg, int chunk, int thread) {
	const ACT(embed_back_call) *c = arg;
	const dl_embed_args *a = c->a;
	(void)thread;
	const int64_t d = a->d, per = a->prefix + a->t, c0 = (int64_t)chunk * c->cols;
	const int64_t c1 = c0 + c->cols < d ? c0 + c->cols : d, w = c1 - c0;
	const vf scale = vset1(a->scale);
	if (!a->accumulate) {
		for (int64_t v = 0; a->table && v < a->vocab; v++) memset(a->table + v * d + c0, 0, (size_t)w * sizeof(float));
		for (int64_t p = 0; a->pos && p < per; p++) memset(a->pos + p * d + c0, 0, (size_t)w * sizeof(float));
	}
	for (int64_t b = 0; b < a->batch; b++) {
		for (int64_t p = 0; p < per; p++) {
			const act *dy = (const act *)a->y + (b * per + p) * d + c0;
			float *pos = a->pos ? a->pos + p * d + c0 : NULL, *to = NULL;
			int64_t n = 0;
			if (p < a->prefix) {
				to = ACT(slot_)(a, b, p, &n);
				n = n - c0 < w ? n - c0 : w; // may be negative
			} else if (a->table) {
				to = a->table + a->ids[b * a->t + p - a->prefix] * d;
				n = w;
			}
			ROW_LOOP(w, i, k) {
				vf g = vmul(AK(dy + i, k), scale);
				if (pos) STOREK(pos + i, vadd(LOADK(pos + i, k), g), k);
				int64_t have = n - i < VL ? n - i : VL;
				if (!to || have <= 0) continue;
				float *at = to + c0 + i;
				if (p < a->prefix) STOREK(at, g, have);
				else STOREK(at, vadd(LOADK(at, have), g), have);
			}
		}
	}
}

// Chunks as wide as the number of threads allows: memory is read in order.
void ACT(dl_embed_back)(dl_pool *p, const dl_embed_args *a) {
	const int64_t threads = dl_pool_threads(p), share = (a->d + threads - 1) / threads;
	ACT(embed_back_call) c = {a, (share + 31) / 32 * 32};
	dl_parallel(p, (int)((a->d + c.cols - 1) / c.cols), ACT(embed_back_chunk), &c);
}
