// The arguments of kernels that show a part of a tensor (inside.cuh), which launchers fill
// (../inside.cc).
#pragma once
#include "kernels/cuda/text/walk_args.h"

namespace taeda::device {

inline constexpr int kBounds = 3;

// The operands are the result, the tensor, and counters that are linear in the indices: an element
// is shown where low <= counter < high for all of them.
struct InsideArgs {
  Walk<2 + kBounds> walk;
  char* out;
  const char* x;
  int64_t shift;  // bytes from x to what the first element of the result would be
  int64_t low[kBounds], high[kBounds];
  alignas(16) unsigned char fill[16];  // what stands elsewhere, as it is stored
};

}  // namespace taeda::device
