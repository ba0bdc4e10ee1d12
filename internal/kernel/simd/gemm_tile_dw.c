// dw = dyᵀ·x on AMX tiles. Both sides stream, so both are packed: one side is
// the left of the product and has to be transposed, which costs more, so the
// narrower one is.
#include "gemm_tile.h"

#if defined(__x86_64__)
#include "whole.h"

#include "isa_amx.h"

#include "tile_pack.h"

enum {
	SUPER = 512,        // rows of x and dy packed at a time: they stay in the second-level cache
	CHUNKS = 4,         // wanted for each thread
	SMALL = 512 * 1024, // products below this many multiplications stay on one thread
	BLOCK_BYTES = 2048,
};

typedef struct {
	const uint16_t *src;
	int width, panels;
	char *packed; // [panel of 32][step of 32 rows][block]
} side;

typedef struct {
	dl_pool *pool;
	float *dw, *sums; // sums: [left panel][right panel][4 tiles], kept between blocks of rows
	side left, right;
	int flipped; // left is x, so a block of sums is a transposed block of dw
	int m, n, k, add;
	int row0, rows, steps; // the block of rows
	int group_l, group_r, chunks_r;
} job;

// pack_chunk packs 32 rows of both sides.
static void pack_chunk(void *arg, int s, int thread) {
	(void)thread;
	const job *j = arg;
	int r = j->row0 + 32 * s, depth = min_int(32, j->m - r);
	const side *l = &j->left, *q = &j->right;
	for (int p = 0; p < l->panels; p++)
		left_from_cols((__m512i *)(l->packed + ((size_t)p * j->steps + s) * BLOCK_BYTES),
		               l->src + (size_t)r * l->width + 32 * p, (size_t)l->width, DL_B16, min_int(32, l->width - 32 * p), depth);
	for (int p = 0; p < q->panels; p++)
		right_from_cols((__m512i *)(q->packed + ((size_t)p * j->steps + s) * BLOCK_BYTES),
		                q->src + (size_t)r * q->width + 32 * p, (size_t)q->width, DL_B16, min_int(32, q->width - 32 * p), depth);
}

// product adds steps products of 32 rows to a block of sums, and asks for the
// sums of the next block ahead of time, 4 lines a step (a seventh faster).
DL_INLINE void product(const char *a, const char *b, float *sums, const float *next, int steps, int first) {
	if (first) {
		_tile_zero(0);
		_tile_zero(1);
		_tile_zero(2);
		_tile_zero(3);
	} else {
		_tile_loadd(0, sums, 64);
		_tile_loadd(1, sums + 256, 64);
		_tile_loadd(2, sums + 512, 64);
		_tile_loadd(3, sums + 768, 64);
	}
	for (int s = 0; s < steps; s++, a += BLOCK_BYTES, b += BLOCK_BYTES) {
		for (int i = 0; i < 4; i++) __builtin_prefetch((const char *)next + 256 * s + 64 * i, 0, 3);
		_tile_loadd(6, b, 64);
		_tile_stream_loadd(4, a, 64);
		_tile_dpbf16ps(0, 4, 6);
		_tile_loadd(7, b + 1024, 64);
		_tile_dpbf16ps(1, 4, 7);
		_tile_stream_loadd(5, a + 1024, 64);
		_tile_dpbf16ps(2, 5, 6);
		_tile_dpbf16ps(3, 5, 7);
	}
	_tile_stored(0, sums, 64);
	_tile_stored(1, sums + 256, 64);
	_tile_stored(2, sums + 512, 64);
	_tile_stored(3, sums + 768, 64);
}

// store_block adds four finished tiles into dw.
static void store_block(const job *j, const float *sums, int pl, int pr) {
	for (int t = 0; t < 4; t++) {
		int l0 = 32 * pl + 16 * (t / 2), r0 = 32 * pr + 16 * (t % 2);
		int hl = min_int(16, j->left.width - l0), wr = min_int(16, j->right.width - r0);
		if (hl <= 0 || wr <= 0) continue;
		vf v[16];
		for (int i = 0; i < 16; i++) v[i] = _mm512_loadu_ps(sums + 256 * t + 16 * i);
		int h = hl, w = wr;
		float *out = j->dw + (size_t)l0 * j->k + r0;
		if (j->flipped) {
			transpose_(v);
			h = wr, w = hl;
			out = j->dw + (size_t)r0 * j->k + l0;
		}
		__mmask16 mask = (__mmask16)((1u << w) - 1);
		for (int i = 0; i < h; i++, out += j->k)
			_mm512_mask_storeu_ps(out, mask, j->add ? _mm512_add_ps(v[i], _mm512_maskz_loadu_ps(mask, out)) : v[i]);
	}
}

static void dw_chunk(void *arg, int c, int thread) {
	(void)thread;
	const job *j = arg;
	int l0 = c / j->chunks_r * j->group_l, l1 = min_int(j->left.panels, l0 + j->group_l);
	int r0 = c % j->chunks_r * j->group_r, r1 = min_int(j->right.panels, r0 + j->group_r);
	int last = j->row0 + j->rows >= j->m;
	DL_BARRIER();
	tiles_on();
	for (int r = r0; r < r1; r++)
		for (int l = l0; l < l1; l++) {
			float *sums = j->sums + ((size_t)l * j->right.panels + r) * 1024;
			product(j->left.packed + (size_t)l * j->steps * BLOCK_BYTES, j->right.packed + (size_t)r * j->steps * BLOCK_BYTES,
			        sums, sums + (size_t)j->right.panels * 1024, j->steps, j->row0 == 0);
			if (last) store_block(j, sums, l, r);
		}
	tiles_off();
}

void dl_tile_dw(dl_pool *p, float *dw, const void *dy, const void *x, int m, int n, int k, int add) {
	job j = {.pool = p, .dw = dw, .m = m, .n = n, .k = k, .add = add, .flipped = k < n};
	side a = {dy, n, ceil_div(n, 32), NULL}, b = {x, k, ceil_div(k, 32), NULL};
	j.left = j.flipped ? b : a;
	j.right = j.flipped ? a : b;
	int super = ceil_div(ceil_div(m, ceil_div(m, SUPER)), 32) * 32;
	size_t bytes = (size_t)super / 32 * BLOCK_BYTES;
	j.left.packed = dl_shared(p, DL_SLOT_A, bytes * (size_t)(a.panels + b.panels));
	j.right.packed = j.left.packed + bytes * (size_t)j.left.panels;
	j.sums = dl_shared(p, DL_SLOT_B, (size_t)a.panels * b.panels * 4096);

	int pl = j.left.panels, pr = j.right.panels, cl = ceil_div(pl, 16), cr = ceil_div(pr, 16);
	int want = dl_pool_threads(p) == 1 ? 1 : CHUNKS * dl_pool_threads(p);
	while (cl * cr < want && (cl < pl || cr < pr)) {
		if (cl < pl && (cr >= pr || pl * cr >= pr * cl)) cl++;
		else cr++;
	}
	j.group_l = ceil_div(pl, cl);
	j.group_r = ceil_div(pr, cr);
	j.chunks_r = ceil_div(pr, j.group_r);
	int chunks = ceil_div(pl, j.group_l) * j.chunks_r, small = (double)m * n * k < SMALL;
	for (j.row0 = 0; j.row0 < m; j.row0 += super) {
		j.rows = min_int(super, m - j.row0);
		j.steps = ceil_div(j.rows, 32);
		if (small) {
			dl_serial(p, j.steps, pack_chunk, &j);
			dl_serial(p, chunks, dw_chunk, &j);
		} else {
			dl_parallel(p, j.steps, pack_chunk, &j);
			dl_parallel(p, chunks, dw_chunk, &j);
		}
	}
}

#include "isa_end.h"
#else
void dl_tile_dw(dl_pool *p, float *dw, const void *dy, const void *x, int m, int n, int k, int a) { (void)p, (void)dw, (void)dy, (void)x, (void)m, (void)n, (void)k, (void)a; }
#endif
