// Activations are float from here on (see vec_all.h).
#undef act
#undef ACT_LETTER
#undef ald
#undef ast
#undef ald_n
#undef ast_n
#undef ald_r
#undef ast_r
#undef alds
#undef asts
#undef ast1
#undef astd
#undef alogistics
#define act float
#define ACT_LETTER _f
#define ald vload
#define ast vstore
#define ald_n vload_n
#define ast_n vstore_n
#define ald_r vload_r
#define ast_r vstore_r
#define alds vloads
#define asts vstores
#define alogistics vlogistics
#define ast1(p, f) (*(p) = (f))
#define astd(p, v, n)                    \
	do {                                 \
		if ((n) == VD) vd_store(p, v);   \
		else vd_store_n(p, v, n);        \
	} while (0)
