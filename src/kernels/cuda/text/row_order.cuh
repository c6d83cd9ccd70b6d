// The order that sorts rows lexicographically, for unique along a dimension: stable merging as in
// sort.cuh, of numbers of rows, which are compared element by element. Each pass reads log2(n) rows
// for each row, as far as they are equal.
#pragma once
#include "kernels/cuda/text/row_order_args.h"
#include "kernels/cuda/text/sort.cuh"

namespace taeda::device {

// Whether row x comes before row y; NaN is the largest.
template <class T>
TD_FN bool row_before(const RowOrderArgs& a, int64_t x, int64_t y) {
  const char* const p = a.rows + x * a.width * a.itemsize;
  const char* const q = a.rows + y * a.width * a.itemsize;
  for (int64_t k = 0; k < a.width; k++) {
    const uint64_t one = key_of(load<T>(p + k * a.itemsize, a.type));
    const uint64_t other = key_of(load<T>(q + k * a.itemsize, a.type));
    if (one != other) return one < other;
  }
  return false;
}

template <class T>
TD_FN void row_merge_kernel(const RowOrderArgs& a) {
  for (uint64_t i = first_index(); i < a.n; i += index_step()) {
    if (a.run == 0) {
      a.order[1][i] = static_cast<int64_t>(i);
      continue;
    }
    const uint64_t run = i / a.run * a.run;
    const bool right = i / a.run % 2;
    const uint64_t start = right ? run - a.run : run;
    uint64_t begin = right ? start : run + a.run, end = begin + a.run;
    if (begin > a.n) begin = a.n;
    if (end > a.n) end = a.n;
    const uint64_t other = begin;
    const int64_t row = a.order[0][i];
    while (begin < end) {
      const uint64_t middle = begin + (end - begin) / 2;
      const int64_t there = a.order[0][middle];
      if (right ? !row_before<T>(a, row, there) : row_before<T>(a, there, row))
        begin = middle + 1;
      else
        end = middle;
    }
    a.order[1][start + (i - run) + (begin - other)] = row;
  }
}

}  // namespace taeda::device
