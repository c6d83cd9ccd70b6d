// Reductions on a CUDA device (text/reduce.cuh).
#pragma once

#include <string_view>

#include "kernels/view.h"

namespace taeda::cuda {

// What is reduced, and where to: x over `dims` (none: over all of them); `values` and `indices`
// have x's sizes without those dimensions, or 1 in their place, and either may be null.
struct Reduction {
  std::string_view name;  // of the kernels: sum, max, ...
  DType compute;
  double parameter = 0;
};
void reduce(const Reduction& what, const View* values, const View* indices, const View& x,
            IntSpan dims);

}  // namespace taeda::cuda
