#if defined(__x86_64__)
#include "vec.h"
#include <stddef.h>

#include "isa_avx512.h"
#include "transpose_avx.h"
#include "vec_all.h"
#include "isa_end.h"
#endif
