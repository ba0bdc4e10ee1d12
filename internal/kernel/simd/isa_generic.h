// Vectors written with the compiler's vector extension: any architecture.
#include "isa.h"

#define VL 8
typedef float DL_NAME(vf_t) __attribute__((vector_size(32)));
#define vf DL_NAME(vf_t)

typedef int32_t DL_NAME(vi_t) __attribute__((vector_size(32)));
#define vi DL_NAME(vi_t)

#define DL_EACH for (int i_ = 0; i_ < VL; i_++)

DL_INLINE vf vload(const float *p) { vf v; memcpy(&v, p, sizeof v); return v; }
DL_INLINE void vstore(float *p, vf v) { memcpy(p, &v, sizeof v); }
DL_INLINE vf vzero(void) { vf v = {0}; return v; }
DL_INLINE vf vset1(float f) { vf v; DL_EACH v[i_] = f; return v; }
DL_INLINE vf vload_n(const float *p, int n) { vf v = {0}; for (int i = 0; i < n; i++) v[i] = p[i]; return v; }
DL_INLINE void vstore_n(float *p, vf v, int n) { for (int i = 0; i < n; i++) p[i] = v[i]; }
DL_INLINE vf vloadh(const uint16_t *p) { vf v; DL_EACH v[i_] = dl_from_bf16(p[i_]); return v; }
DL_INLINE void vstoreh(uint16_t *p, vf v) { DL_EACH p[i_] = dl_to_bf16(v[i_]); }
DL_INLINE vf vloadh_n(const uint16_t *p, int n) { vf v = {0}; for (int i = 0; i < n; i++) v[i] = dl_from_bf16(p[i]); return v; }
DL_INLINE void vstoreh_n(uint16_t *p, vf v, int n) { for (int i = 0; i < n; i++) p[i] = dl_to_bf16(v[i]); }
DL_INLINE vf vadd(vf a, vf b) { return a + b; }
DL_INLINE vf vsub(vf a, vf b) { return a - b; }
DL_INLINE vf vmul(vf a, vf b) { return a * b; }
DL_INLINE vf vdiv(vf a, vf b) { return a / b; }
DL_INLINE vf vsel_gt(vf a, vf b, vf x, vf y) { vi m = (vi)(a > b); return (vf)(((vi)x & m) | ((vi)y & ~m)); }
DL_INLINE vf vmax(vf a, vf b) { return vsel_gt(a, b, a, b); }
DL_INLINE vf vmin(vf a, vf b) { return vsel_gt(b, a, a, b); }
DL_INLINE vf vfma(vf a, vf b, vf c) { return a * b + c; }
DL_INLINE vf vsqrt(vf a) { vf v; DL_EACH v[i_] = sqrtf(a[i_]); return v; }
DL_INLINE float vsum(vf a) { return ((a[0] + a[4]) + (a[2] + a[6])) + ((a[1] + a[5]) + (a[3] + a[7])); }
DL_INLINE float vmaxall(vf a) { float m = a[0]; for (int i = 1; i < VL; i++) m = a[i] > m ? a[i] : m; return m; }
