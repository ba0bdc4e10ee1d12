// AMX tiles in software, so that the kernels for tiles run, and are checked,
// on processors without them: go test -tags emulate_amx. Included by isa_amx.h
// in that build alone; a program of such a build refuses to start (emulate.go).
//
// What the compiler's intrinsics would hide is seen here: a tile that is used
// without a configuration, or in a product it does not fit, ends the process.
// One thing is not seen: a missing DL_BARRIER, since a call is one.
#ifndef DL_AMX_EMULATE_H
#define DL_AMX_EMULATE_H

#include <immintrin.h>
#include <stddef.h>

void dl_emulate_config(const void *config);
void dl_emulate_release(void);
void dl_emulate_zero(int tile);
void dl_emulate_load(int tile, const void *base, ptrdiff_t stride);
void dl_emulate_store(int tile, void *base, ptrdiff_t stride);
void dl_emulate_dot(int sums, int left, int right);

#undef _tile_loadconfig
#undef _tile_release
#undef _tile_zero
#undef _tile_loadd
#undef _tile_stream_loadd
#undef _tile_stored
#undef _tile_dpbf16ps
#define _tile_loadconfig dl_emulate_config
#define _tile_release dl_emulate_release
#define _tile_zero dl_emulate_zero
#define _tile_loadd(t, base, stride) dl_emulate_load(t, base, (ptrdiff_t)(stride))
#define _tile_stream_loadd(t, base, stride) dl_emulate_load(t, base, (ptrdiff_t)(stride))
#define _tile_stored(t, base, stride) dl_emulate_store(t, base, (ptrdiff_t)(stride))
#define _tile_dpbf16ps dl_emulate_dot

#endif
