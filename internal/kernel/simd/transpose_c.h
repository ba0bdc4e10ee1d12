// The transpose of transpose_avx.h in the compiler's vectors.
DL_INLINE void transpose_(vf r[VL]) {
	vf t[VL];
	for (int i = 0; i < VL; i++)
		for (int j = 0; j < VL; j++) t[i][j] = r[j][i];
	for (int i = 0; i < VL; i++) r[i] = t[i];
}
