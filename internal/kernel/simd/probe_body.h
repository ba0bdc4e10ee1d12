// The multiply-adds of one instruction set and nothing else: included before
// gemm_body.h, which hands probe out.

// probe does n rounds of multiply-adds on vectors that stay in registers:
//
//   for n rounds of about 65,536 operations: for each sum: sum += a·b
//
// with more sums than the latency of a multiply-add spans.
static double probe(int n) {
	enum { SUMS = VL == 16 ? 16 : 12, OPS = 2 * (DL_PAIR ? 2 : 1) * VL * SUMS, TIMES = 65536 / OPS };
	vf sum[SUMS], a = vzero(), b = vzero();
	for (int j = 0; j < SUMS; j++) sum[j] = vzero();
	for (int i = 0; i < n; i++)
		for (int t = 0; t < TIMES; t++) {
			__asm__("" : "+v"(a), "+v"(b)); // not known to be 0, nor the same every time
#pragma GCC unroll 16
			for (int j = 0; j < SUMS; j++) sum[j] = DL_MADD(a, b, sum[j]);
		}
	for (int j = 0; j < SUMS; j++) __asm__ __volatile__("" ::"v"(sum[j]));
	return (double)OPS * TIMES * n;
}
