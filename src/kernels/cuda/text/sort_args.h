// The arguments of sorting (sort.cuh), which launchers fill (../sorter.cc, ../pick.cc).
#pragma once
#include "kernels/cuda/text/walk_args.h"

namespace taeda::device {

// Which of a sorted row's elements is wanted (pick.cuh).
enum class Pick : uint8_t { kRank, kMedian, kNanMedian, kMode };

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
  bool has_nan;  // may have
  Pick pick;
  uint64_t rank;     // kRank
  uint32_t threads;  // of a row: 1, or those of a block
};

}  // namespace taeda::device
