// The arguments of sorting rows (row_order.cuh), which launchers fill (../row_order.cc).
#pragma once
#include "kernels/cuda/text/element_type.h"

namespace taeda::device {

// n rows of `width` elements, dense.
struct RowOrderArgs {
  const char* rows;
  uint64_t n;
  int64_t width, itemsize;
  int64_t* order[2];  // the rows' numbers, before and after a pass
  uint64_t run;       // rows that are sorted already; 0: none are numbered yet
  ElementType type;
};

}  // namespace taeda::device
