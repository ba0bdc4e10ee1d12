#include "probe.h"

#include <sched.h>
#include <stdatomic.h>
#include <string.h>
#if defined(__x86_64__)
#include <emmintrin.h>
#endif

#include "gemm.h"
#include "gemm_isa.h"
#include "gemm_tile.h"

// ---- products

typedef struct {
	const dl_gemm_isa *isa; // NULL for tiles
	int n, threads;
	_Atomic int here; // threads that have come
	double flops;     // of one thread
} products_job;

// products_chunk waits for all threads before it begins: so each of them takes
// one chunk, and none takes the chunk of another that is late.
static void products_chunk(void *arg, int chunk, int thread) {
	(void)thread;
	products_job *j = arg;
	atomic_fetch_add(&j->here, 1);
	while (atomic_load(&j->here) < j->threads) sched_yield();
	double flops = j->isa ? j->isa->probe(j->n) : dl_tile_probe(j->n);
	if (chunk == 0) j->flops = flops;
}

double dl_probe_products(dl_pool *p, int level, int engine, int n) {
	products_job j = {.isa = dl_gemm_isa_of(level, engine), .n = n, .threads = dl_pool_threads(p)};
	dl_parallel(p, j.threads, products_chunk, &j);
	return j.flops * j.threads;
}

// ---- copy

typedef struct {
	char *dst;
	const char *src;
	size_t bytes, part; // part of each thread
} copy_job;

enum { CACHED = 32 << 20 }; // both sides together: as much may stay in the last-level cache

// copy_chunk copies past the cache what is too big for it: half as fast again
// as memcpy and as good as any other way.
static void copy_chunk(void *arg, int chunk, int thread) {
	(void)thread;
	const copy_job *j = arg;
	size_t at = (size_t)chunk * j->part;
	if (at >= j->bytes) return;
	size_t n = j->bytes - at < j->part ? j->bytes - at : j->part;
	char *dst = j->dst + at;
	const char *src = j->src + at;
#if defined(__x86_64__)
	if (2 * j->bytes > CACHED) {
		size_t head = -(uintptr_t)dst & 15;
		if (head > n) head = n;
		memcpy(dst, src, head);
		size_t i = head;
		for (; i + 64 <= n; i += 64) {
			__m128i v[4];
			for (int k = 0; k < 4; k++) v[k] = _mm_loadu_si128((const __m128i *)(src + i) + k);
			for (int k = 0; k < 4; k++) _mm_stream_si128((__m128i *)(dst + i) + k, v[k]);
		}
		_mm_sfence();
		memcpy(dst + i, src + i, n - i);
		return;
	}
#endif
	memcpy(dst, src, n);
}

void dl_probe_copy(dl_pool *p, float *dst, const float *src, size_t n) {
	size_t threads = (size_t)dl_pool_threads(p), bytes = n * sizeof(float);
	copy_job j = {(char *)dst, (const char *)src, bytes, ((bytes + threads - 1) / threads + 63) & ~(size_t)63};
	dl_parallel(p, (int)threads, copy_chunk, &j);
}
