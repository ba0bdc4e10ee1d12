// AMX tiles beside AVX-512 with bf16. Everything after this header, up to
// isa_end.h, is compiled for it.
#include "isa.h"
#if defined(DL_EMULATE_AMX)
#include "amx_emulate.h"
#endif

#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx2,fma,f16c,avx512f,avx512bw,avx512dq,avx512vl,avx512bf16,amx-tile,amx-bf16"))), apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx2,fma,f16c,avx512f,avx512bw,avx512dq,avx512vl,avx512bf16,amx-tile,amx-bf16")
#endif

#define VL 16
#define vf __m512

// Eight tiles of 16 rows of 64 bytes. In a product 0 to 3 hold sums (2x2),
// 4 and 5 rows of the left side, 6 and 7 columns of the right side.
DL_INLINE void tiles_on(void) {
	static const struct {
		uint8_t palette, start_row, reserved[14];
		uint16_t bytes[16];
		uint8_t rows[16];
	} config = {1, 0, {0}, {64, 64, 64, 64, 64, 64, 64, 64}, {16, 16, 16, 16, 16, 16, 16, 16}};
	_tile_loadconfig(&config);
}
DL_INLINE void tiles_off(void) { _tile_release(); }

// The compiler does not know that a tile load reads memory: call this between
// the stores that fill a block and the tile loads that read it.
#define DL_BARRIER() __asm__ __volatile__("" ::: "memory")
