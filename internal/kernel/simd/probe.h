// What the machine can do at best, for benchmarks and profiles to divide by.
#ifndef DL_PROBE_H
#define DL_PROBE_H

#include "pool.h"

// dl_probe_products does n rounds of an engine's products on every thread and
// returns how many floating-point operations that was, of all threads together.
double dl_probe_products(dl_pool *p, int level, int engine, int n);

// dl_probe_copy copies n floats, which may not overlap, on all threads.
void dl_probe_copy(dl_pool *p, float *dst, const float *src, size_t n);

#endif
