// Arithmetic on sizes of products, which are positive.
#ifndef DL_WHOLE_H
#define DL_WHOLE_H

static inline int min_int(int a, int b) { return a < b ? a : b; }
static inline int max_int(int a, int b) { return a > b ? a : b; }
static inline int ceil_div(int a, int b) { return (a + b - 1) / b; }
// round_up returns the first multiple of b from a on.
static inline int round_up(int a, int b) { return ceil_div(a, b) * b; }

#endif
