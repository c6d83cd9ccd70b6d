// How lines are cut for Fourier transforms (text/fft.cuh).
#pragma once

#include <cstdint>

#include "taeda/small_vector.h"

namespace taeda::cuda {

using FftFactors = SmallVector<int64_t, 8>;

// Whether n has no prime factor above 7.
bool is_smooth(int64_t n);
// The least length from `least` on that is 1, 3, 5, 9 or 15 times a power of two.
int64_t smooth_length(int64_t least);
// Factors of a smooth n, of passes: n itself up to `whole`, else few of up to `part` each.
FftFactors passes_of(int64_t n, int64_t whole, int64_t part);
// The radices 4, 2, 3, 5 and 7 whose product n is.
FftFactors radices_of(int64_t n);

}  // namespace taeda::cuda
