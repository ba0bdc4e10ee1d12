// Names and accesses that the bodies of vector kernels share (see vec_all.h).
#define ACT(f) DL_CAT(DL_CAT(f, ACT_LETTER), DL_SUFFIX)

// AK and SK are accesses to k elements of activations, 0 <= k <= VL.
#define AK(p, k) ((k) == VL ? ald(p) : ald_n(p, (int)(k)))
#define SK(p, v, k)                        \
	do {                                   \
		if ((k) == VL) ast(p, v);          \
		else ast_n(p, v, (int)(k));        \
	} while (0)

// ROW_LOOP runs the block that follows for each vector of a row of d elements:
// i is its first element, k how many of its elements count.
#define ROW_LOOP(d, i, k)                         \
	for (int64_t i = 0, k = VL; i < (d); i += VL) \
		if ((k = (d) - i < VL ? (d) - i : VL), 1)

// LOADK and STOREK are whole-vector accesses where k = VL.
#define LOADK(p, k) ((k) == VL ? vload(p) : vload_n(p, (int)(k)))
#define STOREK(p, v, k)                       \
	do {                                      \
		if ((k) == VL) vstore(p, v);          \
		else vstore_n(p, v, (int)(k));        \
	} while (0)

DL_INLINE int DL_NAME(flat_chunks)(int64_t n) { return (int)((n + DL_FLAT - 1) / DL_FLAT); }

// A chunk of flat memory: elements FLAT_FROM to FLAT_TO of n.
#define FLAT_FROM(chunk) ((int64_t)(chunk) * DL_FLAT)
#define FLAT_TO(chunk, n) (FLAT_FROM(chunk) + DL_FLAT < (n) ? FLAT_FROM(chunk) + DL_FLAT : (n))
