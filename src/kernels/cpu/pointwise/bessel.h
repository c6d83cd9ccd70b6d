// Bessel and Airy functions by fits in double precision (simd/bessel_fits.h), vectorized.
#pragma once

#include <cstdint>

#include "kernels/special_functions.h"

namespace taeda::cpu {

// out[i] = the function of x[i]: NaN for negative numbers in Y and K, and for infinite ones in J, Y
// and Ai. Off by an ulp of float and some 1e-15 of a double; near the zeros of J, Y and Ai the
// error is that of their largest values.
void bessel(SpecialFunction function, const float* x, float* out, int64_t n);
void bessel(SpecialFunction function, const double* x, double* out, int64_t n);

}  // namespace taeda::cpu
