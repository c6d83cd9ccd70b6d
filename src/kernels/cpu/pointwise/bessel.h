// Bessel functions of single precision: fits in double precision, vectorized.
#pragma once

#include <cstdint>

namespace taeda::cpu {

// Of the first kind (J), of the second (Y), modified ones of the second (K, also times e^x), of
// orders 0 and 1.
enum class BesselFunction : uint8_t { kJ0, kJ1, kY0, kY1, kK0, kK1, kScaledK0, kScaledK1 };

// out[i] = the function of x[i]: NaN for negative numbers in Y and K, and for infinite ones in J
// and Y. Off by an ulp of float but near the zeros of J and Y, where the error is about 1e-15.
void bessel(BesselFunction function, const float* x, float* out, int64_t n);

}  // namespace taeda::cpu
