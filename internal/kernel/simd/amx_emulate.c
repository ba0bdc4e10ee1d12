// The instructions of amx_emulate.h as Intel's manual defines them (SDM volume
// 2: LDTILECFG, TILELOADD, TILESTORED, TILEZERO, TDPBF16PS, TILERELEASE).
#if defined(DL_EMULATE_AMX) && defined(__x86_64__)
#include "amx_emulate.h"

#include <stdio.h>
#include <stdlib.h>

#include "isa_avx512.h"

typedef struct {
	uint16_t bytes; // of a row
	uint8_t rows;
	char row[16][64];
} tile;

// The tile registers of a thread.
static _Thread_local struct {
	int configured;
	tile t[8];
} state;

static void fault(const char *what) {
	fprintf(stderr, "emulated AMX: %s\n", what);
	abort();
}

static tile *tile_of(int t) {
	if (!state.configured) fault("a tile is used without a configuration (#UD)");
	if (t < 0 || t > 7) fault("there is no such tile");
	if (!state.t[t].rows) fault("the configuration leaves this tile out (#UD)");
	return &state.t[t];
}

void dl_emulate_config(const void *config) {
	const uint8_t *c = config; // 64 bytes: palette, start row, 14 zeros, 16 uint16 bytes of a row, 16 uint8 rows
	memset(&state, 0, sizeof state);
	if (c[0] != 1 || c[1] != 0) fault("palette or start row of a configuration (#GP)");
	for (int i = 2; i < 16; i++)
		if (c[i]) fault("reserved bytes of a configuration (#GP)");
	for (int i = 0; i < 16; i++) {
		uint16_t bytes;
		memcpy(&bytes, c + 16 + 2 * i, 2);
		uint8_t rows = c[48 + i];
		if (bytes > 64 || rows > 16 || !bytes != !rows || (i > 7 && rows)) fault("size of a tile in a configuration (#GP)");
		if (i > 7) continue;
		state.t[i].bytes = bytes;
		state.t[i].rows = rows;
	}
	state.configured = 1;
}

void dl_emulate_release(void) { memset(&state, 0, sizeof state); }

void dl_emulate_zero(int t) { memset(tile_of(t)->row, 0, sizeof state.t[t].row); }

void dl_emulate_load(int t, const void *base, ptrdiff_t stride) {
	tile *d = tile_of(t);
	memset(d->row, 0, sizeof d->row);
	for (int r = 0; r < d->rows; r++) memcpy(d->row[r], (const char *)base + r * stride, d->bytes);
}

void dl_emulate_store(int t, void *base, ptrdiff_t stride) {
	const tile *s = tile_of(t);
	for (int r = 0; r < s->rows; r++) memcpy((char *)base + r * stride, s->row[r], s->bytes);
}

// multiply: c[m][n] += Σ_k (even products) + Σ_k (odd products), each sum a
// chain of fused multiply-adds from 0. All 16 columns at once; those beyond the
// tile stay as they are.
static __attribute__((noinline)) void multiply(tile *c, const tile *a, const tile *b) {
	const __m512i upper = _mm512_set1_epi32((int)0xffff0000u);
	const __mmask16 columns = (__mmask16)((1u << c->bytes / 4) - 1);
	for (int m = 0; m < c->rows; m++) {
		__m512 even = _mm512_setzero_ps(), odd = _mm512_setzero_ps();
		for (int k = 0; k < a->bytes / 4; k++) {
			int pair;
			memcpy(&pair, a->row[m] + 4 * k, 4);
			__m512i l = _mm512_set1_epi32(pair), r = _mm512_loadu_si512(b->row[k]);
			even = _mm512_fmadd_ps(_mm512_castsi512_ps(_mm512_slli_epi32(l, 16)), _mm512_castsi512_ps(_mm512_slli_epi32(r, 16)), even);
			odd = _mm512_fmadd_ps(_mm512_castsi512_ps(_mm512_and_si512(l, upper)), _mm512_castsi512_ps(_mm512_and_si512(r, upper)), odd);
		}
		__m512 old = _mm512_loadu_ps(c->row[m]);
		_mm512_mask_storeu_ps(c->row[m], columns, _mm512_add_ps(old, _mm512_add_ps(even, odd)));
	}
}

void dl_emulate_dot(int sums, int left, int right) {
	tile *c = tile_of(sums);
	const tile *a = tile_of(left), *b = tile_of(right);
	if (c == a || c == b || a == b) fault("the tiles of a product must differ (#UD)");
	if (c->rows != a->rows || c->bytes != b->bytes || a->bytes != 4 * b->rows || a->bytes % 4 || b->bytes % 4)
		fault("the tiles of a product do not fit each other (#UD)");
	// The instruction rounds to nearest and takes and gives 0 for subnormals,
	// whatever MXCSR says.
	const unsigned mxcsr = _mm_getcsr();
	_mm_setcsr(0x9fc0);
	multiply(c, a, b);
	_mm_setcsr(mxcsr);
}

#include "isa_end.h"
#else
typedef int dl_no_emulation; // C wants a declaration in every file
#endif
