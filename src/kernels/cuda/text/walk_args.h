// Walk: the indices of some dimensions, and where each lies in several operands.
#pragma once
#include <cstdint>

#include "kernels/cuda/text/element_type.h"
#include "kernels/cuda/text/pointwise_args.h"

namespace taeda::device {

inline constexpr int kWalkDims = 12;  // after merging

// Dimension 0 is the innermost; strides are in bytes.
template <int N>
struct Walk {
  Divisor sizes[kWalkDims];
  int64_t strides[kWalkDims][N];
  uint64_t count;  // of indices
  uint8_t ndim;
  bool wide;  // 31 bits do not hold them
};

}  // namespace taeda::device
