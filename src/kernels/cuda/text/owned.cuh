// Additions at any indices in a fixed order, without atomics: a warp has an array, or one of
// several parts of it, and each of its lanes the elements whose indices are its number modulo 32.
#pragma once
#include "kernels/cuda/text/group.cuh"

namespace taeda::device {

// to[index] += value for each lane in turn; a negative index adds nothing. A whole warp calls,
// which has part `part` of `parts`: every parts-th 32 elements. All of them call with the same
// values.
template <class S, class T>
TD_FN void add_owned(S* to, int64_t index, T value, uint32_t part = 0, uint32_t parts = 1) {
  const uint32_t lane = threadIdx.x % 32;
  const bool owned =
      index >= 0 && (parts == 1 || static_cast<uint64_t>(index) / 32 % parts == part);
  uint32_t left = __ballot_sync(0xffffffffu, owned);
#pragma unroll 1
  for (; left != 0; left &= left - 1) {
    const int k = __ffs(static_cast<int>(left)) - 1;
    const int64_t target = __shfl_sync(0xffffffffu, index, k);
    const T x = __shfl_sync(0xffffffffu, value, k);
    if (target % 32 == lane) to[target] = convert<S>(convert<T>(to[target]) + x);
  }
}

}  // namespace taeda::device
