// A pool of threads that share loops. One Go thread at a time drives a pool;
// the caller works too and is thread 0.
#ifndef DL_POOL_H
#define DL_POOL_H

#include <stddef.h>
#include <stdint.h>

typedef struct dl_pool dl_pool;

// dl_pool_open starts threads-1 workers. NULL when the system refuses.
dl_pool *dl_pool_open(int threads);
// dl_pool_close ends the workers and frees all scratch memory.
void dl_pool_close(dl_pool *p);
int dl_pool_threads(const dl_pool *p);

// dl_parallel calls fn(arg, chunk, thread) once for each chunk in
// [0, n_chunks) and returns when all are done; thread is in [0, threads). Each
// thread begins with chunks of its own, the first thread with the first ones, and
// takes others' when it is through. Not reentrant.
void dl_parallel(dl_pool *p, int n_chunks, void (*fn)(void *arg, int chunk, int thread), void *arg);

// dl_serial is dl_parallel on the caller alone: for loops too short to share.
void dl_serial(dl_pool *p, int n_chunks, void (*fn)(void *arg, int chunk, int thread), void *arg);

// dl_scratch returns at least bytes of memory of this thread, aligned to 64.
// The contents last until the next dl_scratch of that thread asks for more.
// It ends the process when there is no memory.
void *dl_scratch(dl_pool *p, int thread, size_t bytes);

// dl_shared is the same for memory that all threads see. Call it outside
// dl_parallel. Slots are independent blocks.
enum { DL_SLOT_A, DL_SLOT_B, DL_SLOT_C, DL_SLOTS };
void *dl_shared(dl_pool *p, int slot, size_t bytes);

#endif
