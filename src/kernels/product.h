#pragma once

#include "kernels/view.h"

namespace taeda::kernels {

// How many elements sizes make, of a tensor that exists.
inline int64_t product(IntSpan sizes) {
  int64_t n = 1;
  for (const int64_t s : sizes) n *= s;
  return n;
}

}  // namespace taeda::kernels
