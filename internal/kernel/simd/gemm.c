// Drives the element loops of gemm_body.h: blocks, chunks and threads.
#include "gemm.h"

#include "cpu.h"
#include "gemm_isa.h"
#include "gemm_tile.h"
#include "whole.h"

typedef struct {
	const dl_gemm_isa *isa;
	dl_pool *pool;
	void *y;
	const void *x, *b; // b is packed (dl_gemm) or dy (dl_gemm_dw)
	int ytype, xtype, m, n, k, add;
	int copy;       // rows of x are copied before they are used
	int depth;      // packed elements along the sum
	int block;      // packed elements in one block of the sum
	int rows, cols; // size of a chunk of y, multiples of mr and nr
	int col_chunks;
	const float *w; // instead of b: the weight as it is, and its layout
	int layout;
} job;

enum {
	BLOCK = 512,          // longest block of a sum, in packed elements
	DW_BLOCK = 192,       // the same in gradients of weights
	DW_ROWS = 448,        // most rows and columns of their chunks: packed, both sides
	DW_COLS = 512,        //   stay in the second-level cache
	DW_PARTS = 8,         // wanted chunks of dw times parts of their depth
	DW_PART = 768,        // fewest rows of a part
	DW_SUMS = 4 << 20,    // most bytes of sums apart from dw
	ADD_CHUNK = 1 << 12,  // sums in a chunk of adding them
	SMALL = 128 * 1024,   // products below this many multiplications stay on one thread
	A_BYTES = 768 * 1024, // packed rows of a chunk: a share of the second-level cache
	B_BYTES = 256 * 1024, // panels of a weight that are multiplied together: likewise
	CHUNKS = 4,           // wanted for each thread
};

int dl_gemm_engine(int level, int type) {
	if (type == DL_B16 && level == DL_AMX) return DL_TILE;
	if (type == DL_B16 && level == DL_AVX512 && dl_cpu_bf16_dot_fast()) return DL_DOT;
	return DL_FMA;
}

const dl_gemm_isa *dl_gemm_isa_of(int level, int engine) {
	if (engine == DL_TILE) return NULL;
#if defined(__x86_64__)
	if (engine == DL_DOT) return &dl_gemm_isa_avx512bf16;
	if (level >= DL_AVX512) return &dl_gemm_isa_avx512;
	if (level == DL_AVX2) return &dl_gemm_isa_avx2;
#endif
	(void)level;
	return &dl_gemm_isa_c;
}

static size_t elem(int type) { return type == DL_F32 ? 4 : 2; }
static int packed_depth(const dl_gemm_isa *isa, int k) { return isa->pair ? (k + 1) / 2 : k; }

// even_block is the length that cuts n into the fewest blocks of at most the
// given length, all but the last of one length.
static int even_block(int n, int most) { return ceil_div(n, ceil_div(n, most)); }

// ---- weights

typedef struct {
	const dl_gemm_isa *isa;
	uint32_t *dst;
	const float *w;
	int n, k, layout;
} pack_job;

static void pack_chunk(void *arg, int c, int thread) {
	(void)thread;
	const pack_job *j = arg;
	int nr = j->isa->nr, forward = j->layout == DL_FORWARD;
	int width = forward ? j->n : j->k, depth = forward ? j->k : j->n;
	int w = min_int(nr, width - c * nr);
	uint32_t *dst = j->dst + (size_t)c * packed_depth(j->isa, depth) * nr;
	if (forward)
		j->isa->rows(dst, j->w + (size_t)c * nr * j->k, (size_t)j->k, w, depth);
	else
		j->isa->cols(dst, nr, j->w + (size_t)c * nr, (size_t)j->k, DL_F32, w, depth);
}

size_t dl_gemm_packed_bytes(int level, int engine, int layout, int n, int k) {
	int width = layout == DL_FORWARD ? n : k, depth = layout == DL_FORWARD ? k : n;
	if (engine == DL_TILE) return dl_tile_packed_bytes(width, depth);
	const dl_gemm_isa *isa = dl_gemm_isa_of(level, engine);
	return (size_t)round_up(width, isa->nr) * packed_depth(isa, depth) * 4;
}

void dl_gemm_pack(dl_pool *p, int level, int engine, int layout, void *dst, const float *w, int n, int k) {
	if (engine == DL_TILE) {
		dl_tile_pack(p, layout, dst, w, n, k);
		return;
	}
	pack_job j = {dl_gemm_isa_of(level, engine), dst, w, n, k, layout};
	int width = layout == DL_FORWARD ? n : k;
	dl_parallel(p, ceil_div(width, j.isa->nr), pack_chunk, &j);
}

// ---- y = x·B

// stride_of is how many bytes apart copied rows of n packed elements are: an
// odd number of cache lines, so that the rows of a panel share no cache set.
static size_t stride_of(int n) { return (size_t)(ceil_div(n, 16) | 1) * 64; }

// gemm_chunk computes one block of y, walking over panels of B and blocks of
// the sum. Rows of x are read where they are unless that does not do.
static void gemm_chunk(void *arg, int c, int thread) {
	const job *j = arg;
	const dl_gemm_isa *isa = j->isa;
	int r0 = c / j->col_chunks * j->rows, c0 = c % j->col_chunks * j->cols;
	int rows = min_int(j->rows, j->m - r0), cols = min_int(j->cols, j->n - c0);
	int mr = even_block(rows, isa->mr), nr = isa->nr, per = isa->pair ? 2 : 1;
	size_t es = elem(j->xtype), stride = stride_of(j->block), block_bytes = (size_t)rows * stride;
	const char *x = (const char *)j->x + (size_t)r0 * j->k * es;
	float *part = dl_scratch(j->pool, thread, (size_t)j->rows * nr * 4 + (j->copy ? block_bytes * ceil_div(j->depth, j->block) : 0));
	char *copy = (char *)(part + (size_t)j->rows * nr);
	if (j->copy)
		for (int d = 0, b = 0; d < j->depth; d += j->block, b++) {
			int k0 = d * per, len = min_int(j->block * per, j->k - k0);
			isa->copy(copy + b * block_bytes, stride, x + k0 * es, (size_t)j->k, j->xtype, rows, len);
		}
	for (int col = 0; col < cols; col += nr) {
		const uint32_t *b = (const uint32_t *)j->b + (size_t)(c0 + col) * j->depth;
		int w = min_int(nr, cols - col);
		for (int d = 0; d < j->depth; d += j->block) {
			int len = min_int(j->block, j->depth - d), last = d + len == j->depth;
			dl_gemm_left a = {x + (size_t)d * 4, (size_t)j->k * es, 4, last && (size_t)j->depth * 4 > (size_t)j->k * es};
			if (j->copy) a = (dl_gemm_left){copy + (size_t)(d / j->block) * block_bytes, stride, 4, 0};
			// Blocks of a sum meet in y, or in part when y is bf16.
			int direct = last || j->ytype == DL_F32;
			for (int i = 0; i < rows; i += mr, a.p += mr * a.row) {
				dl_gemm_out o = {part + (size_t)i * nr, (size_t)nr, DL_F32, d > 0, NULL, 0};
				if (direct)
					o = (dl_gemm_out){(char *)j->y + ((size_t)(r0 + i) * j->n + c0 + col) * elem(j->ytype), (size_t)j->n, j->ytype, j->add, NULL, 0};
				if (direct && d > 0) {
					if (j->ytype == DL_F32) o.add = 1;
					else o.part = part + (size_t)i * nr, o.part_ld = (size_t)nr;
				}
				isa->tile(min_int(mr, rows - i), w, len, &a, b + (size_t)d * nr, &o);
			}
		}
	}
}

// pack_block packs the elements m0 to m0+len along the depth of columns c0 to
// c0+cols of B = wᵀ or w into panels.
static void pack_block(const job *j, uint32_t *dst, size_t panel, int c0, int cols, int m0, int len) {
	enum { SLICE = 16 };
	int nr = j->isa->nr, per = j->isa->pair ? 2 : 1;
	if (j->layout == DL_FORWARD) {
		for (int c = 0; c < cols; c += nr, dst += panel)
			j->isa->rows(dst, j->w + (size_t)(c0 + c) * j->k + m0, (size_t)j->k, min_int(nr, cols - c), len);
		return;
	}
	for (int d = 0; d < len; d += SLICE)
		for (int c = 0; c < cols; c += nr)
			j->isa->cols(dst + (size_t)(c / nr) * panel + (size_t)(d / per) * nr, nr, j->w + (size_t)(m0 + d) * j->n + c0 + c, (size_t)j->n, DL_F32,
			             min_int(nr, cols - c), min_int(SLICE, len - d));
}

// block_chunk computes one block of y, a block of the sum at a time, for all
// rows: what it multiplies with is read once, and packed if it is not.
static void block_chunk(void *arg, int c, int thread) {
	enum { PANELS = 8 }; // of rows that are multiplied with all columns in turn
	const job *j = arg;
	const dl_gemm_isa *isa = j->isa;
	int r0 = c / j->col_chunks * j->rows, c0 = c % j->col_chunks * j->cols;
	int rows = min_int(j->rows, j->m - r0), cols = min_int(j->cols, j->n - c0);
	int mr = even_block(rows, isa->mr), nr = isa->nr, per = isa->pair ? 2 : 1, panels = ceil_div(cols, nr), wide = panels * nr;
	size_t es = elem(j->xtype), stride = stride_of(j->block);
	// Blocks of a sum meet in y, or in part when y is bf16.
	int parts = j->ytype != DL_F32 && j->depth > j->block;
	size_t b_elems = j->w ? (size_t)wide * j->block : 0, part_elems = parts ? (size_t)rows * wide : 0;
	uint32_t *packed = dl_scratch(j->pool, thread, (b_elems + part_elems) * 4 + (j->copy ? (size_t)PANELS * mr * stride : 0));
	float *part = (float *)(packed + b_elems);
	char *copy = (char *)(part + part_elems);
	for (int d = 0; d < j->depth; d += j->block) {
		int len = min_int(j->block, j->depth - d), last = d + len == j->depth, m0 = d * per, mlen = min_int(len * per, j->k - m0);
		size_t panel = (size_t)nr * (j->w ? len : j->depth);
		const uint32_t *b = packed;
		if (j->w) pack_block(j, packed, panel, c0, cols, m0, mlen);
		else b = (const uint32_t *)j->b + (size_t)c0 * j->depth + (size_t)d * nr;
		for (int i0 = 0; i0 < rows; i0 += PANELS * mr) {
			int end = min_int(rows, i0 + PANELS * mr);
			const char *x = (const char *)j->x + ((size_t)(r0 + i0) * j->k + m0) * es;
			dl_gemm_left left = {x, (size_t)j->k * es, 4, last && (size_t)j->depth * 4 > (size_t)j->k * es};
			if (j->copy) {
				isa->copy(copy, stride, x, (size_t)j->k, j->xtype, end - i0, mlen);
				left = (dl_gemm_left){copy, stride, 4, 0};
			}
			for (int col = 0; col < cols; col += nr) {
				dl_gemm_left a = left;
				for (int i = i0; i < end; i += mr, a.p += mr * a.row) {
					float *sums = part + (size_t)i * wide + col;
					dl_gemm_out o = {sums, (size_t)wide, DL_F32, d > 0, NULL, 0};
					if (last || !parts) {
						o = (dl_gemm_out){(char *)j->y + ((size_t)(r0 + i) * j->n + c0 + col) * elem(j->ytype), (size_t)j->n, j->ytype, j->add, NULL, 0};
						if (d > 0 && parts) o.part = sums, o.part_ld = (size_t)wide;
						else if (d > 0) o.add = 1;
					}
					isa->tile(min_int(mr, end - i), min_int(nr, cols - col), len, &a, b + (size_t)(col / nr) * panel, &o);
				}
			}
		}
	}
}

static void run(const job *j, int chunks, void (*fn)(void *, int, int), void *arg) {
	if ((double)j->m * j->n * j->k < SMALL)
		dl_serial(j->pool, chunks, fn, arg);
	else
		dl_parallel(j->pool, chunks, fn, arg);
}

// run_blocks cuts y for block_chunk: by columns, each of which reads all of x,
// and where they are too few by rows, each of which packs them again.
static void run_blocks(job *j) {
	enum { ROWS = 256 }; // least rows of a chunk
	int nr = j->isa->nr, threads = dl_pool_threads(j->pool), want = threads == 1 ? 1 : CHUNKS * threads;
	int panels = ceil_div(j->n, nr), most = max_int(1, B_BYTES / (4 * nr * j->block));
	int chunks = max_int(ceil_div(panels, most), min_int(want, panels));
	j->cols = ceil_div(panels, chunks) * nr;
	j->col_chunks = ceil_div(j->n, j->cols);
	int row_chunks = max_int(1, min_int(ceil_div(want, j->col_chunks), j->m / ROWS));
	j->rows = ceil_div(ceil_div(j->m, j->isa->mr), row_chunks) * j->isa->mr;
	run(j, ceil_div(j->m, j->rows) * j->col_chunks, block_chunk, j);
}

static job gemm_job(dl_pool *p, int level, int engine, void *y, int ytype, const void *x, int xtype, int m, int n, int k, int add) {
	const dl_gemm_isa *isa = dl_gemm_isa_of(level, engine);
	job j = {.isa = isa, .pool = p, .y = y, .x = x, .ytype = ytype, .xtype = xtype, .m = m, .n = n, .k = k, .add = add};
	j.depth = packed_depth(isa, k);
	j.block = even_block(j.depth, BLOCK);
	// Rows a multiple of 4096 bytes apart would push each other out of the cache.
	j.copy = (!isa->pair && xtype == DL_B16) || (n > isa->nr && (size_t)k * elem(xtype) % 4096 == 0);
	return j;
}

void dl_gemm_unpacked(dl_pool *p, int level, int engine, void *y, int ytype, const void *x, int xtype,
                      const float *w, int layout, int m, int n, int k, int add) {
	job j = gemm_job(p, level, engine, y, ytype, x, xtype, m, n, k, add);
	j.w = w;
	j.layout = layout;
	run_blocks(&j);
}

void dl_gemm(dl_pool *p, int level, int engine, void *y, int ytype, const void *x, int xtype,
             const void *packed, int m, int n, int k, int add) {
	if (engine == DL_TILE) {
		dl_tile_gemm(p, y, ytype, x, packed, m, n, k, add);
		return;
	}
	const dl_gemm_isa *isa = dl_gemm_isa_of(level, engine);
	job j = gemm_job(p, level, engine, y, ytype, x, xtype, m, n, k, add);
	j.b = packed;
	int want = CHUNKS * dl_pool_threads(p), row_panels = ceil_div(m, isa->mr);
	int fit = min_int(8, A_BYTES / (j.depth * 4 * isa->mr));
	if (fit < 8) { // rows too long for the cache
		run_blocks(&j);
		return;
	}
	int row_chunks = ceil_div(row_panels, fit);
	j.rows = ceil_div(row_panels, row_chunks) * isa->mr;
	row_chunks = ceil_div(m, j.rows);
	int col_panels = ceil_div(n, isa->nr);
	j.col_chunks = dl_pool_threads(p) == 1 ? 1 : min_int(col_panels, ceil_div(want, row_chunks));
	j.cols = ceil_div(col_panels, j.col_chunks) * isa->nr;
	j.col_chunks = ceil_div(n, j.cols);
	run(&j, row_chunks * j.col_chunks, gemm_chunk, &j);
}

// ---- dw = dyᵀ·x

// pack_cols packs columns of src[depth][...] into panels of at most step
// columns, panel elements apart. It goes down the rows once, a few at a time,
// so that src is read along its rows.
static void pack_cols(const job *j, uint32_t *dst, size_t panel, int step, int pad, const char *src, int ld, int width, int depth) {
	enum { SLICE = 16 };
	int per = j->isa->pair ? 2 : 1;
	size_t es = elem(j->xtype);
	for (int d = 0; d < depth; d += SLICE) {
		int n = min_int(SLICE, depth - d);
		for (int c = 0; c < width; c += step) {
			int w = min_int(step, width - c), stride = pad ? step : w;
			j->isa->cols(dst + (size_t)(c / step) * panel + (size_t)(d / per) * stride, stride,
			             src + ((size_t)d * ld + c) * es, (size_t)ld, j->xtype, w, n);
		}
	}
}

// dw_job is a product of which the depth is cut into parts, too: so threads
// need not pack the same columns. Part 0 sums in dw, the others in memory of
// their own; all are added in their order.
typedef struct {
	job of;
	int parts, blocks; // blocks of the sum in all
	float *sums;       // [parts-1][n][k]; alone [n][k], added after each part
	int alone;         // on one thread
} dw_job;

// add_to adds n sums to dw.
static void add_to(float *restrict dw, const float *restrict sums, size_t n) {
	enum { STEP = 64 }; // known to the compiler, which makes vectors of it
	for (; n >= STEP; n -= STEP, dw += STEP, sums += STEP)
		for (int i = 0; i < STEP; i++) dw[i] += sums[i];
	for (size_t i = 0; i < n; i++) dw[i] += sums[i];
}

// dw_chunk computes one block of dw over one part of the depth: rows are
// columns of dy, columns are columns of x.
static void dw_chunk(void *arg, int c, int thread) {
	const dw_job *dj = arg;
	const job *j = &dj->of;
	const dl_gemm_isa *isa = j->isa;
	int part = c % dj->parts;
	c /= dj->parts;
	int r0 = c / j->col_chunks * j->rows, c0 = c % j->col_chunks * j->cols;
	int rows = min_int(j->rows, j->n - r0), cols = min_int(j->cols, j->k - c0);
	int mr = even_block(rows, isa->mr), nr = isa->nr, per = isa->pair ? 2 : 1;
	// cols may write 16 elements past a panel's end.
	size_t a_panel = (size_t)round_up(mr * j->block, 16) + 16, b_panel = (size_t)nr * j->block;
	size_t a_elems = a_panel * ceil_div(rows, mr), b_elems = b_panel * ceil_div(cols, nr);
	uint32_t *a = dl_scratch(j->pool, thread, (a_elems + b_elems) * 4), *b = a + a_elems;
	size_t es = elem(j->xtype);
	int first = dj->blocks * part / dj->parts, end = dj->blocks * (part + 1) / dj->parts;
	float *dw = j->y, *sums = dw;
	if (part > 0) sums = dj->sums + (dj->alone ? 0 : (size_t)(part - 1) * j->n * j->k);
	for (int block = first; block < end; block++) {
		int d = block * j->block, len = min_int(j->block, j->depth - d), m0 = d * per, mlen = min_int(len * per, j->m - m0);
		pack_cols(j, a, a_panel, mr, 0, (const char *)j->b + ((size_t)m0 * j->n + r0) * es, j->n, rows, mlen);
		pack_cols(j, b, b_panel, nr, 1, (const char *)j->x + ((size_t)m0 * j->k + c0) * es, j->k, cols, mlen);
		for (int col = 0; col < cols; col += nr) {
			float *out = sums + (size_t)r0 * j->k + c0 + col;
			for (int i = 0; i < rows; i += mr) {
				int h = min_int(mr, rows - i);
				dl_gemm_left left = {(const char *)(a + (size_t)(i / mr) * a_panel), 4, (size_t)h * 4, 0};
				dl_gemm_out o = {out + (size_t)i * j->k, (size_t)j->k, DL_F32, block > first || (part == 0 && j->add), NULL, 0};
				isa->tile(h, min_int(nr, cols - col), len, &left, b + (size_t)(col / nr) * b_panel, &o);
			}
		}
	}
	if (part > 0 && dj->alone)
		for (size_t i = 0, at = (size_t)r0 * j->k + c0; i < (size_t)rows; i++, at += j->k) add_to(dw + at, sums + at, cols);
}

// add_parts_chunk adds the sums of all parts but the first to some of dw.
static void add_parts_chunk(void *arg, int c, int thread) {
	(void)thread;
	const dw_job *dj = arg;
	size_t all = (size_t)dj->of.n * dj->of.k, at = (size_t)c * ADD_CHUNK, n = all - at < ADD_CHUNK ? all - at : ADD_CHUNK;
	for (int part = 1; part < dj->parts; part++) add_to((float *)dj->of.y + at, dj->sums + (part - 1) * all + at, n);
}

void dl_gemm_dw(dl_pool *p, int level, int engine, float *dw, const void *dy, const void *x, int type,
                int m, int n, int k, int add) {
	if (engine == DL_TILE) {
		dl_tile_dw(p, dw, dy, x, m, n, k, add);
		return;
	}
	const dl_gemm_isa *isa = dl_gemm_isa_of(level, engine);
	dw_job dj = {.of = {.isa = isa, .pool = p, .y = dw, .x = x, .b = dy, .xtype = type, .m = m, .n = n, .k = k, .add = add}};
	job *j = &dj.of;
	j->depth = packed_depth(isa, m);
	j->block = even_block(j->depth, DW_BLOCK);
	dj.blocks = ceil_div(j->depth, j->block);
	int row_panels = ceil_div(n, isa->mr), col_panels = ceil_div(k, isa->nr);
	int rc = ceil_div(n, DW_ROWS), cc = ceil_div(k, DW_COLS);
	// Parts depend on the sizes alone, or the sums would on the number of threads.
	size_t bytes = (size_t)n * k * 4;
	dj.parts = max_int(1, min_int(DW_PARTS / (rc * cc), m / DW_PART));
	dj.parts = min_int(dj.parts, 1 + (int)(DW_SUMS / bytes));
	dj.alone = dl_pool_threads(p) == 1;
	if (dj.parts > 1) dj.sums = dl_shared(p, DL_SLOT_A, bytes * (dj.alone ? 1 : dj.parts - 1));
	int want = dj.alone ? 1 : CHUNKS * dl_pool_threads(p);
	if (dj.parts > 1 || rc * cc > 1) want /= 2; // more would pack more
	while (rc * cc * dj.parts < want && (rc < row_panels || cc < col_panels)) {
		// Cut the side whose chunks are longer.
		if (rc < row_panels && (cc >= col_panels || row_panels * isa->mr * cc >= col_panels * isa->nr * rc))
			rc++;
		else
			cc++;
	}
	j->rows = ceil_div(row_panels, rc) * isa->mr;
	j->cols = ceil_div(col_panels, cc) * isa->nr;
	j->col_chunks = ceil_div(k, j->cols);
	run(j, ceil_div(n, j->rows) * j->col_chunks * dj.parts, dw_chunk, &dj);
	if (dj.parts > 1 && !dj.alone) run(j, (int)(((size_t)n * k + ADD_CHUNK - 1) / ADD_CHUNK), add_parts_chunk, &dj);
}
