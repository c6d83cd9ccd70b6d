// Sequences: out[i] = f(i), by the definitions that all devices share (kernels/sequences.h).
//
// A thread has an element, which is written once. The indices of a triangle are found by bisection
// over its rows.
#pragma once
#include "kernels/cuda/text/kernel.cuh"
// kernel.cuh first: what it defines is for the others
#include "kernels/cuda/text/array.cuh"
#include "kernels/cuda/text/sequence_args.h"
#include "kernels/cuda/text/walk.cuh"

namespace taeda::device {

TD_FN void sequence_kernel(const auto& a) {
  for (uint64_t i = first_index(); i < a.n; i += index_step())
    set(a.out, i, a.at(static_cast<int64_t>(i)));
}

// [2, n]: rows, then columns.
TD_FN void triangle_kernel(const TriangleArgs& a) {
  for (uint64_t i = first_index(); i < a.n; i += index_step()) {
    const auto number = static_cast<int64_t>(i);
    const int64_t row = a.at.row_of(number);
    set(a.out, i, row);
    set(a.out, a.n + i, a.at.first_column(row) + number - a.at.before(row));
  }
}

}  // namespace taeda::device
