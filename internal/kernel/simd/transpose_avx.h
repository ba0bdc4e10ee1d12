// Transposes of VL vectors of VL 32-bit lanes, for whichever of AVX2 and
// AVX-512 is being compiled.
#if VL == 8
DL_INLINE void transpose_(vf r[8]) {
	vf t[8], s[8];
#pragma GCC unroll 8
	for (int i = 0; i < 8; i += 2) {
		t[i] = _mm256_unpacklo_ps(r[i], r[i + 1]);
		t[i + 1] = _mm256_unpackhi_ps(r[i], r[i + 1]);
	}
#pragma GCC unroll 8
	for (int i = 0; i < 8; i += 4) {
		s[i] = _mm256_shuffle_ps(t[i], t[i + 2], 0x44);
		s[i + 1] = _mm256_shuffle_ps(t[i], t[i + 2], 0xee);
		s[i + 2] = _mm256_shuffle_ps(t[i + 1], t[i + 3], 0x44);
		s[i + 3] = _mm256_shuffle_ps(t[i + 1], t[i + 3], 0xee);
	}
#pragma GCC unroll 8
	for (int i = 0; i < 4; i++) {
		r[i] = _mm256_permute2f128_ps(s[i], s[i + 4], 0x20);
		r[i + 4] = _mm256_permute2f128_ps(s[i], s[i + 4], 0x31);
	}
}
#else
DL_INLINE void transpose_(vf r[16]) {
	vf t[16], s[16];
	// Pairs, then quads, inside each 128-bit quarter.
#pragma GCC unroll 16
	for (int i = 0; i < 16; i += 2) {
		t[i] = _mm512_unpacklo_ps(r[i], r[i + 1]);
		t[i + 1] = _mm512_unpackhi_ps(r[i], r[i + 1]);
	}
#pragma GCC unroll 16
	for (int i = 0; i < 16; i += 4) {
		s[i] = _mm512_shuffle_ps(t[i], t[i + 2], 0x44);
		s[i + 1] = _mm512_shuffle_ps(t[i], t[i + 2], 0xee);
		s[i + 2] = _mm512_shuffle_ps(t[i + 1], t[i + 3], 0x44);
		s[i + 3] = _mm512_shuffle_ps(t[i + 1], t[i + 3], 0xee);
	}
	// Then the quarters: s[4q+c] holds column c of each quarter for rows 4q..4q+3.
#pragma GCC unroll 16
	for (int c = 0; c < 4; c++) {
		vf a = _mm512_shuffle_f32x4(s[c], s[c + 4], 0x88), b = _mm512_shuffle_f32x4(s[c + 8], s[c + 12], 0x88);
		vf d = _mm512_shuffle_f32x4(s[c], s[c + 4], 0xdd), e = _mm512_shuffle_f32x4(s[c + 8], s[c + 12], 0xdd);
		r[c] = _mm512_shuffle_f32x4(a, b, 0x88);
		r[c + 8] = _mm512_shuffle_f32x4(a, b, 0xdd);
		r[c + 4] = _mm512_shuffle_f32x4(d, e, 0x88);
		r[c + 12] = _mm512_shuffle_f32x4(d, e, 0xdd);
	}
}
#endif
