// The arguments of kernels that go over rows: one dimension of tensors of equal sizes.
#pragma once
#include "kernels/cuda/text/walk_args.h"

namespace taeda::device {

// Operand 0 is written, and of some kernels others.
struct RowArgs {
  Walk<3> rows;
  char* data[3];
  int64_t strides[3];  // of the dimension, in bytes
  uint64_t n;          // its size
  uint32_t threads;    // of the group that has a row
  ElementType types[3];
};

}  // namespace taeda::device
