// tril, triu and padding by a constant: a part of a tensor, and a number around it.
//
//   out_i = x_i   where low_c <= counter_c(i) < high_c for every c
//           fill  elsewhere
//
// A counter is a dimension's index, or the difference of two. Each element of the result is written
// once, and of x what shows is read once: 2 n bytes move at most.
#pragma once
#include "kernels/cuda/text/inside_args.h"
#include "kernels/cuda/text/move.cuh"

namespace taeda::device {

template <class S>
TD_FN void inside_kernel(const InsideArgs& a) {
  for (uint64_t i = first_index(); i < a.walk.count; i += index_step()) {
    const Offsets<2 + kBounds> at = offsets(a.walk, i);
    bool inside = true;
#pragma unroll
    for (int c = 0; c < kBounds; c++) inside &= at[2 + c] >= a.low[c] && at[2 + c] < a.high[c];
    move<S>(a.out + at[0], inside ? static_cast<const void*>(a.x + (at[1] + a.shift)) : a.fill);
  }
}

}  // namespace taeda::device
