// Reductions of several dense arrays, each to one element: a block takes in a chunk, whatever array
// it is of, then a warp combines the states of each array's. Where none has two, the first launch
// is all. Each element is read once; nothing is atomic, so the same bits come out every time.
#pragma once
#include "kernels/cuda/text/reduce_list_args.h"
#include "kernels/cuda/text/reducers.cuh"

namespace taeda::device {

// R: as for reduce_kernel, with result(state, parameter).
template <class R>
TD_FN void reduce_list_kernel(const ReduceListArgs& a) {
  const Group block{blockDim.x};
  uint32_t at = 0;
  for (uint32_t chunk = blockIdx.x; chunk < a.chunks; chunk += gridDim.x) {
    while (at + 1 < a.count && a.arrays[at + 1].first <= chunk) at++;
    const ReducedArray& array = a.arrays[at];
    const uint64_t begin = uint64_t{chunk - array.first} * kReducedChunk;
    const uint64_t end = begin + kReducedChunk < array.n ? begin + kReducedChunk : array.n;
    typename R::State state = R::identity();
#pragma unroll 4
    for (uint64_t i = begin + threadIdx.x; i < end; i += blockDim.x) {
      const auto value = load<typename R::T>(array.x + i * a.itemsize, a.x_type);
      R::take(state, value, static_cast<int64_t>(i), a.parameter);
    }
    state = block.reduce(state, R::combine);
    if (threadIdx.x != 0) continue;
    if (a.partial)
      reinterpret_cast<typename R::State*>(a.partial)[chunk] = state;
    else
      store(array.out, a.out_type, R::result(state, a.parameter));
  }
}

template <class R>
TD_FN void join_list_kernel(const ReduceListArgs& a) {
  const Group warp{32};
  const auto* const states = reinterpret_cast<const typename R::State*>(a.partial);
  for (uint64_t i = warp.first(); i < a.count; i += warp.step()) {
    const uint32_t end = i + 1 < a.count ? a.arrays[i + 1].first : a.chunks;
    typename R::State state = R::identity();
    for (uint32_t part = a.arrays[i].first + warp.rank(); part < end; part += 32)
      state = R::combine(state, states[part]);
    state = warp.reduce(state, R::combine);
    if (warp.rank() == 0) store(a.arrays[i].out, a.out_type, R::result(state, a.parameter));
  }
}

}  // namespace taeda::device
