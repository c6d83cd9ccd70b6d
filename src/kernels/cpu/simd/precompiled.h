// simd.h for every instruction set, for the precompiled header of what is compiled once per set:
// Highway is most of the text of such a file, and three times. simd.h knows that it was here.

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/simd/precompiled.h"
#include "kernels/cpu/simd/simd.h"

#if HWY_ONCE
#define TAEDA_SIMD_IS_PRECOMPILED
#endif
