// Additions at any indices in a fixed order, without atomics: a warp has an array, and each of its
// lanes the elements whose indices are its number modulo 32.
#pragma once
#include "kernels/cuda/text/group.cuh"

namespace taeda::device {

// to[index] += value for each lane in turn; a negative index adds nothing. A whole warp calls.
template <class S, class T>
TD_FN void add_owned(S* to, int64_t index, T value) {
  const uint32_t lane = threadIdx.x % 32;
#pragma unroll 1
  for (int k = 0; k < 32; k++) {
    const int64_t target = __shfl_sync(0xffffffffu, index, k);
    const T x = __shfl_sync(0xffffffffu, value, k);
    if (target >= 0 && target % 32 == lane) to[target] = convert<S>(convert<T>(to[target]) + x);
  }
}

}  // namespace taeda::device
