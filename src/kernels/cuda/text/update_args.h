// The arguments of kernels that update small tensors (update.cu), which launchers fill
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

// Numbers at different places, as many as one launch takes.
inline constexpr size_t kMaxCounters = 256;
struct AddOneArgs {
  char* at[kMaxCounters];
  ElementType types[kMaxCounters];  // float32 or float64
  uint64_t n;
};

}  // namespace taeda::device
