// The instruction sets that code with vectors is compiled for; which one runs, targets.cc decides.
// Included before Highway.
#pragma once

// Two vector levels and the baseline keep the library small; the levels between are rare.
#ifndef HWY_DISABLED_TARGETS
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_SSE4 | HWY_AVX3_DL)
#endif

// Whether what is being compiled is for no vectors: Highway's are loops over numbers then.
#define TD_EMULATED (HWY_TARGET == HWY_EMU128 || HWY_TARGET == HWY_SCALAR)
