// Planes: elements by their number in row-major planes of three dimensions (place.cuh).
#pragma once
#include "kernels/cuda/text/walk_args.h"

namespace taeda::device {

struct Planes {
  Divisor sizes[3];  // the last dimension first
  uint64_t count;    // of the elements of all planes
  bool wide;         // 31 bits do not hold it
};

}  // namespace taeda::device
