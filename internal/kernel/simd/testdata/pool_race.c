// Loops of every length on pools of 1 to 5 threads, for the thread sanitizer:
// make tsan. Chunks write plain memory, each its own, which the caller reads
// and clears between loops without a lock.
#include "../pool.h"

#include <stdio.h>
#include <stdlib.h>

enum { CHUNKS = 40, LOOPS = 20000 };

typedef struct {
	dl_pool *pool;
	int ran[CHUNKS], salt;
	long *shared;
} loop;

static void chunk(void *arg, int c, int thread) {
	loop *l = arg;
	int *mine = dl_scratch(l->pool, thread, (size_t)(c + 1) * 64);
	mine[c] = l->salt + c;
	l->ran[c] += mine[c];
	l->shared[c] = c;
}

int main(void) {
	for (int threads = 1; threads <= 5; threads++) {
		dl_pool *p = dl_pool_open(threads);
		if (!p || dl_pool_threads(p) != threads) return 1;
		for (int i = 0; i < LOOPS / threads; i++) {
			loop l = {.pool = p, .salt = i};
			int n = i % (CHUNKS + 1);
			l.shared = dl_shared(p, i % DL_SLOTS, (size_t)(n + 1) * sizeof(long));
			if (i % 7 == 0) dl_serial(p, n, chunk, &l);
			else dl_parallel(p, n, chunk, &l);
			for (int c = 0; c < n; c++)
				if (l.ran[c] != i + c || l.shared[c] != c) {
					printf("pool of %d threads, loop of %d: chunk %d did not run once\n", threads, n, c);
					return 1;
				}
		}
		dl_pool_close(p);
	}
	return 0;
}
