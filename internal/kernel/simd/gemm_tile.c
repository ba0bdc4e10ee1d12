// y = x·B on AMX tiles: weights packed in tile order, x read in place.
#include "gemm_tile.h"

#if defined(__x86_64__)
#include "whole.h"

#include "isa_amx.h"

#include "tile_pack.h"

enum {
	ROWS = 128,            // rows of x in a chunk
	DEPTH = 640,           // longest block of the depth: 32 rows of it fit in the first-level cache
	B_BYTES = 1024 * 1024, // packed columns of a chunk: they stay in the second-level cache
	CHUNKS = 4,            // wanted for each thread
	SMALL = 512 * 1024,    // products below this many multiplications stay on one thread
	BLOCK_BYTES = 2048,    // a block of 32x32 bf16
};

// ---- weights: [panel of 32 columns][32 of the depth][block]

typedef struct {
	char *dst;
	const float *w;
	int n, k, layout;
} pack_job;

static void pack_chunk(void *arg, int c, int thread) {
	(void)thread;
	const pack_job *j = arg;
	int width = j->layout == DL_FORWARD ? j->n : j->k, depth = j->layout == DL_FORWARD ? j->k : j->n;
	int w = min_int(32, width - 32 * c), steps = ceil_div(depth, 32);
	__m512i *dst = (__m512i *)(j->dst + (size_t)c * steps * BLOCK_BYTES);
	for (int s = 0; s < steps; s++, dst += 32) {
		int d = min_int(32, depth - 32 * s);
		if (j->layout == DL_FORWARD)
			right_from_rows(dst, j->w + (size_t)32 * c * j->k + 32 * s, (size_t)j->k, DL_F32, w, d);
		else
			right_from_cols(dst, j->w + (size_t)32 * s * j->k + 32 * c, (size_t)j->k, DL_F32, w, d);
	}
}

size_t dl_tile_packed_bytes(int width, int depth) {
	return (size_t)ceil_div(width, 32) * ceil_div(depth, 32) * BLOCK_BYTES;
}

void dl_tile_pack(dl_pool *p, int layout, void *dst, const float *w, int n, int k) {
	pack_job j = {dst, w, n, k, layout};
	dl_parallel(p, ceil_div(layout == DL_FORWARD ? n : k, 32), pack_chunk, &j);
}

// ---- product

typedef struct {
	dl_pool *pool;
	char *y;
	const uint16_t *x;
	const char *b;
	int ytype, m, n, k, add;
	int steps, depth_block, rows, cols, row_chunks;
} job;

// A finished 32x32 block of sums that still has to be rounded and stored. That
// is done row by row between the products of the next block.
typedef struct {
	const float *sums; // [32][32]
	char *y;
	int row, rows, w; // next row, end, columns
} pending;

DL_INLINE void store_row(const job *j, pending *q) {
	if (q->row >= q->rows) return;
	const float *s = q->sums + q->row * 32;
	__m512 lo = _mm512_loadu_ps(s), hi = _mm512_loadu_ps(s + 16);
	__mmask32 mask = mask32(q->w);
	if (j->ytype == DL_F32) {
		float *y = (float *)q->y + (size_t)q->row * j->n;
		__mmask16 m0 = (__mmask16)mask, m1 = (__mmask16)(mask >> 16);
		if (j->add) {
			lo = _mm512_add_ps(lo, _mm512_maskz_loadu_ps(m0, y));
			hi = _mm512_add_ps(hi, _mm512_maskz_loadu_ps(m1, y + 16));
		}
		_mm512_mask_storeu_ps(y, m0, lo);
		if (m1) _mm512_mask_storeu_ps(y + 16, m1, hi);
	} else {
		uint16_t *y = (uint16_t *)q->y + (size_t)q->row * j->n;
		if (j->add) {
			__m512i old = _mm512_maskz_loadu_epi16(mask, y);
			lo = _mm512_add_ps(lo, _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(_mm512_castsi512_si256(old)), 16)));
			hi = _mm512_add_ps(hi, _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(_mm512_extracti64x4_epi64(old, 1)), 16)));
		}
		_mm512_mask_storeu_epi16(y, mask, (__m512i)_mm512_cvtne2ps_pbh(hi, lo));
	}
	q->row++;
}

// One block of 32 or 16 rows: x0 points at its rows (stride bytes apart) for
// the full steps, tail at its rows for the last step when the depth is not a
// multiple of 32.
typedef struct {
	const char *x, *tail;
	size_t stride;
	int y_row, skip, h; // first row of y, rows that an earlier block has stored, 16 or 32
} row_block;

// STEP adds one product of 32 along the depth. The weights come with a hint
// that keeps them out of the first-level cache, where they would push out the
// rows of x (half as fast again).
#define STEP(a, stride, b)                                   \
	do {                                                     \
		_tile_stream_loadd(6, (b), 64);                            \
		_tile_loadd(4, (a), (stride));                       \
		_tile_dpbf16ps(0, 4, 6);                             \
		if (wide) {                                          \
			_tile_stream_loadd(7, (b) + 1024, 64);                 \
			_tile_dpbf16ps(1, 4, 7);                         \
		}                                                    \
		if (tall) {                                          \
			_tile_loadd(5, (a) + 16 * (stride), (stride));   \
			_tile_dpbf16ps(2, 5, 6);                         \
			if (wide) _tile_dpbf16ps(3, 5, 7);               \
		}                                                    \
	} while (0)

// block adds steps [s0, s1) of the depth to a block of sums, which it clears
// first when s0 is 0, and stores rows of the block before it.
DL_INLINE void block(const job *j, const row_block *r, const char *b, float *sums, int s0, int s1, pending *q, const int tall, const int wide) {
	int full = min_int(s1, j->k / 32), per = ceil_div(32, s1 - s0);
	if (s0 == 0) {
		_tile_zero(0);
		_tile_zero(1);
		_tile_zero(2);
		_tile_zero(3);
	} else {
		_tile_loadd(0, sums, 128);
		_tile_loadd(1, sums + 16, 128);
		_tile_loadd(2, sums + 16 * 32, 128);
		_tile_loadd(3, sums + 16 * 32 + 16, 128);
	}
	const char *x = r->x + (size_t)s0 * 64;
	size_t stride = r->stride;
	b += (size_t)s0 * BLOCK_BYTES;
	for (int s = s0; s < full; s++, x += 64, b += BLOCK_BYTES) {
		STEP(x, stride, b);
		for (int i = 0; i < per; i++) store_row(j, q);
	}
	if (full < s1) STEP(r->tail, (size_t)64, b);
	while (q->row < q->rows) store_row(j, q);
	_tile_stored(0, sums, 128);
	if (wide) _tile_stored(1, sums + 16, 128);
	if (tall) {
		_tile_stored(2, sums + 16 * 32, 128);
		if (wide) _tile_stored(3, sums + 16 * 32 + 16, 128);
	}
}

// row_blocks cuts rows [r0, r1) of x into blocks. The last one reaches back
// over rows that are done, or, when x has fewer than 16 rows, is a copy padded
// with zeros. Rows whose depth is not a multiple of 32 get a padded copy of
// their last step.
static int row_blocks(const job *j, row_block *out, char *pad, int r0, int r1) {
	int n = 0, full = j->k / 32, rest = j->k % 32;
	for (int r = r0; r < r1;) {
		int left = r1 - r, h = left > 16 && j->m >= 32 ? 32 : 16;
		int start = left >= h ? r : max_int(0, r1 - h), have = min_int(h, j->m - start);
		row_block *o = &out[n++];
		*o = (row_block){(const char *)(j->x + (size_t)start * j->k), NULL, (size_t)j->k * 2, start, r - start, h};
		if (have < h) {
			o->stride = (size_t)j->steps * 64;
			o->x = pad;
			for (int i = 0; i < h; i++, pad += o->stride) {
				memset(pad, 0, o->stride);
				if (i < have) memcpy(pad, j->x + (size_t)(start + i) * j->k, (size_t)j->k * 2);
			}
			// The copy has whole steps; put the last one where block expects it.
			if (rest) {
				o->tail = pad;
				for (int i = 0; i < h; i++, pad += 64) memcpy(pad, o->x + i * o->stride + (size_t)full * 64, 64);
			}
		} else if (rest) {
			o->tail = pad;
			for (int i = 0; i < h; i++, pad += 64)
				_mm512_storeu_si512(pad, row32(j->x + (size_t)(start + i) * j->k + full * 32, DL_B16, rest));
		}
		r = start + h;
	}
	return n;
}

static void gemm_chunk(void *arg, int c, int thread) {
	const job *j = arg;
	int r0 = c % j->row_chunks * j->rows, r1 = min_int(j->m, r0 + j->rows);
	int c0 = c / j->row_chunks * j->cols, c1 = min_int(j->n, c0 + j->cols);
	row_block blocks[ROWS / 16 + 1];
	// With one block of the depth two blocks of sums take turns; with several
	// each panel of columns keeps its own.
	int keep = j->steps > j->depth_block, panels = keep ? ceil_div(c1 - c0, 32) : 2;
	float *sums = dl_scratch(j->pool, thread, (size_t)panels * 4096 + (ROWS + 32) * 64 + (size_t)32 * (j->steps + 1) * 64);
	int n = row_blocks(j, blocks, (char *)(sums + (size_t)panels * 1024), r0, r1), flip = 0;
	size_t es = j->ytype == DL_F32 ? 4 : 2;
	pending q = {0};
	DL_BARRIER();
	tiles_on();
	// The rows of a block stay in the first-level cache while the weights, which
	// lie in order, stream past from the second.
	for (int i = 0; i < n; i++) {
		const row_block *r = &blocks[i];
		for (int s0 = 0; s0 < j->steps; s0 += j->depth_block) {
			int s1 = min_int(j->steps, s0 + j->depth_block);
			for (int col = c0; col < c1; col += 32) {
				const char *b = j->b + (size_t)(col / 32) * j->steps * BLOCK_BYTES;
				int w = min_int(32, c1 - col);
				float *s = sums + 1024 * (keep ? (col - c0) / 32 : flip);
				flip = !flip;
				if (r->h == 32) {
					if (w > 16) block(j, r, b, s, s0, s1, &q, 1, 1);
					else block(j, r, b, s, s0, s1, &q, 1, 0);
				} else {
					if (w > 16) block(j, r, b, s, s0, s1, &q, 0, 1);
					else block(j, r, b, s, s0, s1, &q, 0, 0);
				}
				if (s1 == j->steps)
					q = (pending){s, j->y + ((size_t)r->y_row * j->n + col) * es, r->skip, min_int(r->h, j->m - r->y_row), w};
			}
		}
		// The next block of rows clears sums that may still be waiting.
		if (keep)
			while (q.row < q.rows) store_row(j, &q);
	}
	while (q.row < q.rows) store_row(j, &q);
	tiles_off();
}

void dl_tile_gemm(dl_pool *p, void *y, int ytype, const void *x, const void *packed, int m, int n, int k, int add) {
	job j = {.pool = p, .y = y, .x = x, .b = packed, .ytype = ytype, .m = m, .n = n, .k = k, .add = add};
	j.steps = ceil_div(k, 32);
	j.depth_block = ceil_div(j.steps, ceil_div(j.steps, DEPTH / 32));
	j.rows = k <= 128 ? ROWS / 2 : ROWS;
	j.row_chunks = ceil_div(m, j.rows);
	int panels = ceil_div(n, 32), fit = max_int(1, B_BYTES / (j.steps * BLOCK_BYTES));
	int want = dl_pool_threads(p) == 1 ? 1 : CHUNKS * dl_pool_threads(p);
	int blocks = max_int(ceil_div(panels, fit), min_int(panels, ceil_div(want, j.row_chunks)));
	j.cols = ceil_div(panels, blocks) * 32;
	int chunks = j.row_chunks * ceil_div(n, j.cols);
	if ((double)m * n * k < SMALL)
		dl_serial(p, chunks, gemm_chunk, &j);
	else
		dl_parallel(p, chunks, gemm_chunk, &j);
}

// ---- ceiling

double dl_tile_probe(int n) {
	static const char zeros[8192] __attribute__((aligned(64)));
	const int wide = 1, tall = 1;
	tiles_on();
	for (int i = 0; i < n; i++) {
		const char *a = zeros, *b = zeros + 4096;
		STEP(a, (size_t)64, b);
	}
	tiles_off();
	return 2.0 * 32 * 32 * 32 * n;
}

#include "isa_end.h"
#else
// Never called: dl_gemm_engine gives no tiles here.
size_t dl_tile_packed_bytes(int width, int depth) { return (size_t)width * depth; }
void dl_tile_pack(dl_pool *p, int l, void *d, const float *w, int n, int k) { (void)p, (void)l, (void)d, (void)w, (void)n, (void)k; }
void dl_tile_gemm(dl_pool *p, void *y, int t, const void *x, const void *b, int m, int n, int k, int a) { (void)p, (void)y, (void)t, (void)x, (void)b, (void)m, (void)n, (void)k, (void)a; }
double dl_tile_probe(int n) { return n; }
#endif
