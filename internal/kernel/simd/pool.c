#include "pool.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if defined(__x86_64__)
#include <immintrin.h>
#define DL_PAUSE() _mm_pause()
#elif defined(__aarch64__)
#define DL_PAUSE() __asm__ __volatile__("yield")
#else
#define DL_PAUSE() ((void)0)
#endif

// Under the address sanitizer memory beyond the bytes last asked for is as
// good as not there.
#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define __SANITIZE_ADDRESS__ 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#define DL_ONLY(p, bytes, of)                                           \
	do {                                                                \
		__asan_unpoison_memory_region(p, bytes);                        \
		__asan_poison_memory_region((char *)(p) + (bytes), (of) - (bytes)); \
	} while (0)
#else
#define DL_ONLY(p, bytes, of) ((void)0)
#endif

// How long a thread spins before it sleeps: about 30 microseconds, longer
// than the gap between two kernels of a step.
enum { DL_SPIN = 1000 };

typedef struct {
	void *p;
	size_t bytes;
	char pad[64 - sizeof(void *) - sizeof(size_t)];
} dl_block;

// The chunks that are a thread's to begin with and not yet taken: end<<32 | next.
// It takes them from the front; others, when they have none left, from the back.
typedef struct {
	_Atomic uint64_t range;
	char pad[64 - sizeof(uint64_t)];
} dl_share;

struct dl_pool {
	int threads;
	pthread_t *workers;
	dl_block *scratch; // one for each thread
	dl_share *shares;  // likewise
	dl_block shared[DL_SLOTS];

	// The loop being run: written by the caller while no chunk is out, read by
	// a thread that holds a chunk.
	void (*fn)(void *, int, int);
	void *arg;

	char pad0[64];
	_Atomic uint32_t loops; // handed out so far
	char pad1[64];
	_Atomic int left; // chunks that are not done
	char pad2[64];

	_Atomic int stop;
	_Atomic int sleepers; // workers in wake_cond
	_Atomic int waiting;  // caller is in done_cond
	pthread_mutex_t mu;
	pthread_cond_t wake_cond, done_cond;
};

typedef struct {
	dl_pool *p;
	int thread;
} dl_start;

// take takes a chunk of a share, from its front or back; -1 where none is left.
// Until the chunk is done the caller cannot start another loop.
static int take(dl_share *s, int back) {
	uint64_t r = atomic_load(&s->range);
	for (;;) {
		uint32_t next = (uint32_t)r, end = (uint32_t)(r >> 32);
		if (next >= end) return -1;
		if (atomic_compare_exchange_weak(&s->range, &r, back ? r - ((uint64_t)1 << 32) : r + 1)) return (int)(back ? end - 1 : next);
	}
}

// finished counts one chunk as done and wakes the caller after the last.
static void finished(dl_pool *p) {
	if (atomic_fetch_sub(&p->left, 1) == 1 && atomic_load(&p->waiting)) {
		pthread_mutex_lock(&p->mu);
		pthread_cond_signal(&p->done_cond);
		pthread_mutex_unlock(&p->mu);
	}
}

static void run_chunks(dl_pool *p, int thread) {
	for (int i = 0; i < p->threads; i++) {
		dl_share *share = &p->shares[(thread + i) % p->threads];
		for (int c; (c = take(share, i > 0)) >= 0;) {
			p->fn(p->arg, c, thread);
			finished(p);
		}
	}
}

static void *worker(void *v) {
	dl_start s = *(dl_start *)v;
	free(v);
	dl_pool *p = s.p;
	for (uint32_t seen = 0;;) {
		int spin = 0;
		while (atomic_load(&p->loops) == seen && !atomic_load(&p->stop) && spin < DL_SPIN) {
			DL_PAUSE();
			spin++;
		}
		if (spin == DL_SPIN) {
			pthread_mutex_lock(&p->mu);
			atomic_fetch_add(&p->sleepers, 1);
			while (atomic_load(&p->loops) == seen && !atomic_load(&p->stop))
				pthread_cond_wait(&p->wake_cond, &p->mu);
			atomic_fetch_sub(&p->sleepers, 1);
			pthread_mutex_unlock(&p->mu);
		}
		seen = atomic_load(&p->loops);
		if (atomic_load(&p->stop)) return NULL;
		run_chunks(p, s.thread);
	}
}

// wake rouses the workers that sleep. The order "publish, then read sleepers"
// here and "raise sleepers, then look for a loop" in worker means that no
// wake-up is lost.
static void wake(dl_pool *p) {
	if (atomic_load(&p->sleepers) == 0) return;
	pthread_mutex_lock(&p->mu);
	pthread_cond_broadcast(&p->wake_cond);
	pthread_mutex_unlock(&p->mu);
}

void dl_parallel(dl_pool *p, int n_chunks, void (*fn)(void *, int, int), void *arg) {
	if (p->threads == 1 || n_chunks <= 1) {
		dl_serial(p, n_chunks, fn, arg);
		return;
	}
	p->fn = fn;
	p->arg = arg;
	atomic_store(&p->left, n_chunks);
	// Neighbouring chunks for each thread, the same ones in every loop of as many:
	// so what a thread reads is often what it wrote, in its own cache.
	for (int i = 0; i < p->threads; i++) {
		uint64_t next = (uint64_t)n_chunks * i / p->threads, end = (uint64_t)n_chunks * (i + 1) / p->threads;
		atomic_store(&p->shares[i].range, end << 32 | next);
	}
	atomic_fetch_add(&p->loops, 1);
	wake(p);
	run_chunks(p, 0);
	for (int spin = 0; atomic_load(&p->left) != 0 && spin < DL_SPIN; spin++) DL_PAUSE();
	if (atomic_load(&p->left) == 0) return;
	pthread_mutex_lock(&p->mu);
	atomic_store(&p->waiting, 1);
	while (atomic_load(&p->left) != 0) pthread_cond_wait(&p->done_cond, &p->mu);
	atomic_store(&p->waiting, 0);
	pthread_mutex_unlock(&p->mu);
}

void dl_serial(dl_pool *p, int n_chunks, void (*fn)(void *, int, int), void *arg) {
	(void)p;
	for (int c = 0; c < n_chunks; c++) fn(arg, c, 0);
}

// raw_alloc gives memory aligned to 64 with the original address kept in front.
static void *raw_alloc(size_t bytes) {
	char *raw = malloc(bytes + 64 + sizeof(void *));
	if (!raw) {
		fprintf(stderr, "kernel: no memory for %zu bytes of scratch\n", bytes);
		abort();
	}
	char *p = (char *)(((uintptr_t)raw + sizeof(void *) + 63) & ~(uintptr_t)63);
	memcpy(p - sizeof(void *), &raw, sizeof(void *));
	return p;
}

static void raw_free(void *p) {
	if (!p) return;
	void *raw;
	memcpy(&raw, (char *)p - sizeof(void *), sizeof(void *));
	free(raw);
}

static void *grow(dl_block *b, size_t bytes) {
	if (bytes > b->bytes) {
		raw_free(b->p);
		b->p = raw_alloc(bytes);
		b->bytes = bytes;
	}
	if (b->p) DL_ONLY(b->p, bytes, b->bytes);
	return b->p;
}

void *dl_scratch(dl_pool *p, int thread, size_t bytes) { return grow(&p->scratch[thread], bytes); }
void *dl_shared(dl_pool *p, int slot, size_t bytes) { return grow(&p->shared[slot], bytes); }

int dl_pool_threads(const dl_pool *p) { return p->threads; }

static void release(dl_pool *p) {
	for (int i = 0; p->scratch && i < p->threads; i++) raw_free(p->scratch[i].p);
	for (int i = 0; i < DL_SLOTS; i++) raw_free(p->shared[i].p);
	pthread_mutex_destroy(&p->mu);
	pthread_cond_destroy(&p->wake_cond);
	pthread_cond_destroy(&p->done_cond);
	free(p->scratch);
	free(p->shares);
	free(p->workers);
	free(p);
}

static void stop_workers(dl_pool *p, int n) {
	atomic_store(&p->stop, 1);
	wake(p);
	for (int i = 0; i < n; i++) pthread_join(p->workers[i], NULL);
}

dl_pool *dl_pool_open(int threads) {
	if (threads < 1) threads = 1;
	dl_pool *p = calloc(1, sizeof *p);
	if (!p) return NULL;
	p->threads = threads;
	p->scratch = calloc((size_t)threads, sizeof *p->scratch);
	p->shares = calloc((size_t)threads, sizeof *p->shares);
	p->workers = calloc((size_t)threads, sizeof *p->workers);
	pthread_mutex_init(&p->mu, NULL);
	pthread_cond_init(&p->wake_cond, NULL);
	pthread_cond_init(&p->done_cond, NULL);
	if (!p->scratch || !p->shares || !p->workers) {
		release(p);
		return NULL;
	}

#if !defined(_WIN32)
	// Workers run no Go code: signals belong to Go's own threads. Faults stay
	// unblocked so that a crash is seen where it happens.
	sigset_t all, old;
	sigfillset(&all);
	sigdelset(&all, SIGSEGV);
	sigdelset(&all, SIGBUS);
	sigdelset(&all, SIGFPE);
	sigdelset(&all, SIGILL);
	pthread_sigmask(SIG_SETMASK, &all, &old);
#endif
	int started = 0, err = 0;
	for (; started < threads - 1 && !err;) {
		dl_start *s = malloc(sizeof *s);
		if (!s) {
			err = 1;
			break;
		}
		s->p = p;
		s->thread = started + 1;
		err = pthread_create(&p->workers[started], NULL, worker, s);
		if (err)
			free(s);
		else
			started++;
	}
#if !defined(_WIN32)
	pthread_sigmask(SIG_SETMASK, &old, NULL);
#endif
	if (err) {
		stop_workers(p, started);
		release(p);
		return NULL;
	}
	return p;
}

void dl_pool_close(dl_pool *p) {
	if (!p) return;
	stop_workers(p, p->threads - 1);
	release(p);
}
