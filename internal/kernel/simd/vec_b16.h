// Activations are bfloat16 from here on (see vec_all.h).
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
#define act uint16_t
#define ACT_LETTER _h
#define ald vloadh
#define ast vstoreh
#define ald_n vloadh_n
#define ast_n vstoreh_n
#define ald_r vloadh_r
#define ast_r vstoreh_r
#define alds vloadsh
#define asts vstoresh
#define alogistics vlogisticsh
#define ast1(p, f) (*(p) = dl_to_bf16(f))
#define astd(p, v, n)                                              \
	do {                                                           \
		float t_[VD];                                              \
		vd_store(t_, v);                                           \
		for (int j_ = 0; j_ < (n); j_++) (p)[j_] = dl_to_bf16(t_[j_]); \
	} while (0)
