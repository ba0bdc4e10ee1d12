// What the processor and the operating system allow.
#ifndef DL_CPU_H
#define DL_CPU_H

// Levels, slowest first. DL_AMX is tiles for bf16 and AVX-512 for the rest.
enum { DL_C, DL_AVX2, DL_AVX512, DL_AMX, DL_LEVELS };

// What kernels that are no products know beside a level: DL_AVX512 with
// AVX512_BF16 for kernels on bf16.
enum { DL_AVX512_BF16 = DL_LEVELS };

// dl_cpu_vec_level returns what such kernels take for a level.
int dl_cpu_vec_level(int level);

// dl_cpu_missing returns what keeps a level from running here, as a constant
// string, or NULL when it runs. The first call also asks Linux, where the
// processor has tiles, for the right to use them.
const char *dl_cpu_missing(int level);

// dl_cpu_bf16_dot reports AVX512_BF16 (vdpbf16ps) on top of DL_AVX512.
int dl_cpu_bf16_dot(void);
// dl_cpu_bf16_dot_fast reports that vdpbf16ps does more than fused
// multiply-adds of floats. AMD's does twice as much by its published figures;
// Intel's does half as much (Sapphire Rapids, measured: 83 against 150 GFLOP/s
// in a whole product).
int dl_cpu_bf16_dot_fast(void);

#endif
