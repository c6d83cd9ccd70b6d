// Moving elements within a CUDA device, with conversion; of arithmetic types only.
#pragma once

#include "kernels/view.h"
#include "taeda/scalar.h"

namespace taeda::cuda {

// dst = src, which has its sizes (stride 0 broadcasts); the memory must not overlap.
void copy(const View& dst, const View& src);
void fill(const View& dst, const Scalar& value);

}  // namespace taeda::cuda
