// The argument of frexp's kernels (frexp.cu), which the launcher fills (../frexp.cc).
#pragma once
#include "kernels/cuda/text/array_args.h"

namespace taeda::device {

struct FrexpArgs {
  Array mantissa, x;
  int32_t* exponent;
  uint64_t n;
};

}  // namespace taeda::device
