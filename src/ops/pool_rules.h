// Shape rules of ops/pool.yaml.
#pragma once

#include "kernels/cpu/pool.h"
#include "taeda/tensor.h"

namespace taeda::rules {

// Sizes of the result of pooling; the contract of every pooling operator (kernels/cpu/pool.h).
inline DimVector pooled(std::string_view name, IntSpan in, int64_t spatial, IntSpan kernel,
                        IntSpan stride, IntSpan padding, IntSpan dilation, bool ceil_mode) {
  return cpu::pool_sizes(name, in, spatial, kernel, stride, padding, dilation, ceil_mode);
}

// Sizes of the result of adaptive pooling to `output_size`.
DimVector adaptive_pooled(std::string_view name, IntSpan in, int64_t spatial, IntSpan output_size);

}  // namespace taeda::rules
