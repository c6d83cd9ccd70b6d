// The arguments of the kernel of running statistics (update.cu), which its launcher fills
// (../update.cc).
#pragma once
#include <cstdint>

#include "kernels/cuda/text/element_type.h"

namespace taeda::device {

// Vectors of n elements.
struct MoveRunningArgs {
  char* self;
  const char* value;
  int64_t self_stride, value_stride;  // in bytes
  uint64_t n;
  double momentum, scale;
  ElementType self_type, value_type;
};

}  // namespace taeda::device
