// Sine and cosine of multiples of pi, exact where those are.
#pragma once
#include "kernels/cuda/text/kernel.cuh"

namespace taeda::device {

// sin and cos of pi x, |x| <= 2.
TD_FN void sine_cosine_of_pi(double x, double* s, double* c) {
#if defined(__CUDA_ARCH__)
  ::sincospi(x, s, c);
#else
  const int quarters = static_cast<int>(std::nearbyint(2 * x));
  const double angle = 3.141592653589793 * (x - quarters / 2.), sine = std::sin(angle),
               cosine = std::cos(angle);
  *s = quarters % 2 ? (quarters & 2 ? -cosine : cosine) : quarters & 2 ? -sine : sine;
  *c = quarters % 2 ? (quarters & 2 ? sine : -sine) : quarters & 2 ? -cosine : cosine;
#endif
}

}  // namespace taeda::device
