// Matrix products. All matrices are row-major and dense.
//
// A product has one side that stays (the weight, packed once per version) and
// one that streams (the activation, packed block by block in scratch). The
// engine says what a packed element is:
//
//   DL_FMA   a float; bf16 activations are widened, weights stay fp32
//   DL_DOT   two bf16 along the depth, for vdpbf16ps; weights are rounded
//   DL_TILE  AMX tiles of such pairs; weights are rounded
//
// Sums over the depth are taken in fp32, in blocks whose bounds depend on the
// depth alone, and the blocks are added in order. So one row of a result does
// not depend on the other rows, nor on the number of threads. Gradients of
// weights add them in groups, which depend on all three sizes.
#ifndef DL_GEMM_H
#define DL_GEMM_H

#include "pool.h"

enum { DL_F32, DL_B16 };            // types of activations
enum { DL_FMA, DL_DOT, DL_TILE };   // engines
enum { DL_FORWARD, DL_BACKWARD };   // layouts: x·Wᵀ, dy·W

// dl_gemm_engine is the engine of a level for activations of a type.
int dl_gemm_engine(int level, int type);

// dl_gemm_packed_bytes is the size of w[n,k] packed for a layout.
size_t dl_gemm_packed_bytes(int level, int engine, int layout, int n, int k);
// dl_gemm_pack packs w[n,k] into dst (aligned to 64).
void dl_gemm_pack(dl_pool *p, int level, int engine, int layout, void *dst, const float *w, int n, int k);

// dl_gemm computes y[m,n] = x[m,k]·B[k,n] (+ y with add), B packed by
// dl_gemm_pack: for DL_FORWARD of w[n,k]; for DL_BACKWARD of w[k,n].
void dl_gemm(dl_pool *p, int level, int engine, void *y, int ytype, const void *x, int xtype,
             const void *packed, int m, int n, int k, int add);

// dl_gemm_unpacked is dl_gemm with B as it lies in memory: w[n,k] for
// DL_FORWARD, w[k,n] for DL_BACKWARD. It packs what it needs on the way, for
// each call anew, and gives the same bits. Not for DL_TILE.
void dl_gemm_unpacked(dl_pool *p, int level, int engine, void *y, int ytype, const void *x, int xtype,
                      const float *w, int layout, int m, int n, int k, int add);

// dl_gemm_dw computes dw[n,k] = dy[m,n]ᵀ·x[m,k] (+ dw with add), dy and x of one type.
void dl_gemm_dw(dl_pool *p, int level, int engine, float *dw, const void *dy, const void *x, int type,
                int m, int n, int k, int add);

#endif
