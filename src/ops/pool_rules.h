// Shape rules of ops/pool.yaml.
#pragma once

#include "kernels/cpu/pool/pool.h"
#include "taeda/tensor.h"

namespace taeda::rules {

// Sizes of the result of pooling; the contract of every pooling operator (kernels/cpu/pool/pool.h).
inline DimVector pooled(std::string_view name, IntSpan in, int64_t spatial, IntSpan kernel,
                        IntSpan stride, IntSpan padding, IntSpan dilation, bool ceil_mode) {
  return cpu::pool_sizes(name, in, spatial, kernel, stride, padding, dilation, ceil_mode);
}

// How many elements a window over `spatial` dimensions has, 2^32 for any number beyond.
inline int64_t window_size(IntSpan kernel, int64_t spatial) {
  constexpr int64_t kMost = int64_t{1} << 32;
  int64_t count = 1;
  for (int64_t d = 0; d < spatial; d++) {
    const int64_t k = std::max<int64_t>(1, kernel[kernel.size() == 1 ? 0 : static_cast<size_t>(d)]);
    count = k > kMost / count ? kMost : count * k;
  }
  return count;
}

// Whether the last dimensions of `in` are no smaller than the kernel (one size, or one for each).
inline bool covers_kernel(IntSpan in, IntSpan kernel) {
  if (in.size() < 3) return true;
  for (size_t i = 0; i < 3; i++) {
    if (in[in.size() - 3 + i] < kernel[kernel.size() == 1 ? 0 : i]) return false;
  }
  return true;
}

// Sizes of the result of adaptive pooling to `output_size`.
DimVector adaptive_pooled(std::string_view name, IntSpan in, int64_t spatial, IntSpan output_size);

// The sizes that pooling has made `in` of, the last of them; `output_size` where several have the
// same result, with the batch and the channels or without.
DimVector unpooled(IntSpan in, IntSpan kernel, const OptInts& stride, IntSpan padding,
                   const OptInts& output_size);

}  // namespace taeda::rules
