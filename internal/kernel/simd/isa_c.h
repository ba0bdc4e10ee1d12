// Portable variant: vectors of the compiler, 8 floats wide, no target flags.
#define DL_SUFFIX _c
#include "isa_generic.h"
