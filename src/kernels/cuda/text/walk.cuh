// From the number of an element to its offsets in operands of any strides.
#pragma once
#include "kernels/cuda/text/convert.cuh"
#include "kernels/cuda/text/walk_args.h"

namespace taeda::device {

TD_FN uint32_t divide(uint32_t n, Divisor d) { return (__umulhi(n, d.multiplier) + n) >> d.shift; }

template <int N>
struct Offsets {
  int64_t at[N];
  TD_FN int64_t operator[](int k) const { return at[k]; }
};

template <int N>
TD_FN Offsets<N> offsets(const Walk<N>& walk, uint64_t i) {
  Offsets<N> found = {};
  uint64_t rest = i;
#pragma unroll 1
  for (int d = 0; d < walk.ndim; d++) {
    uint64_t index = rest;
    if (d + 1 < walk.ndim) {
      const Divisor size = walk.sizes[d];
      rest = walk.wide ? rest / size.value : divide(static_cast<uint32_t>(rest), size);
      index -= rest * size.value;
    }
#pragma unroll
    for (int k = 0; k < N; k++) found.at[k] += static_cast<int64_t>(index) * walk.strides[d][k];
  }
  return found;
}

// The number of this thread among all, and of all.
TD_FN uint64_t first_index() { return uint64_t{blockIdx.x} * blockDim.x + threadIdx.x; }
TD_FN uint64_t index_step() { return uint64_t{gridDim.x} * blockDim.x; }

}  // namespace taeda::device
