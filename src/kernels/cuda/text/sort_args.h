// The arguments of sorting (sort.cuh), which launchers fill (../sort.cc).
#pragma once
#include "kernels/cuda/text/walk_args.h"

namespace taeda::device {

// Rows of n elements along one dimension; of each the first `kept` in their order are written. The
// operands are x, the values and the indices.
struct SortArgs {
  Walk<3> rows;
  char* data[3];
  int64_t strides[3];
  uint64_t n, kept;
  uint64_t* keys[2];  // [rows, n], before and after a pass
  int64_t* order[2];  // which elements they are of
  uint64_t width;     // of the runs that are sorted already
  ElementType type;   // of x
  bool descending;
};

}  // namespace taeda::device
