// Products of bf16 on AMX tiles (see gemm.h for the meaning of the arguments).
#ifndef DL_GEMM_TILE_H
#define DL_GEMM_TILE_H

#include "pool.h"

size_t dl_tile_packed_bytes(int width, int depth);
void dl_tile_pack(dl_pool *p, int layout, void *dst, const float *w, int n, int k);
void dl_tile_gemm(dl_pool *p, void *y, int ytype, const void *x, const void *packed, int m, int n, int k, int add);
void dl_tile_dw(dl_pool *p, float *dw, const void *dy, const void *x, int m, int n, int k, int add);

// dl_tile_probe runs n steps of the 2x2 tile product on operands that stay in
// the first-level cache, on the caller's thread, and returns how many
// floating-point operations that was.
double dl_tile_probe(int n);

#endif
