// The argument of functions of single elements (special.cuh), which launchers fill (../special.cc).
#pragma once
#include "kernels/cuda/text/array_args.h"

namespace taeda::device {

struct ElementwiseArgs {
  Array out, in[3];
  uint64_t n;
  uint8_t which;  // of the functions that a kernel has
};

}  // namespace taeda::device
