// Group: the threads that share a row: one, a warp, or the block. All of a group go the same way.
//
// Values are combined in an order that the size of the group alone decides.
#pragma once
#include "kernels/cuda/text/walk.cuh"

namespace taeda::device {

inline constexpr int kMaxWarps = 32;  // of a block

template <class S>
TD_FN S shuffle_xor(S s, int bits) {
  static_assert(sizeof(S) % 4 == 0);
  using Word = std::conditional_t<sizeof(S) % 8 == 0, uint64_t, uint32_t>;
  struct Words {
    Word at[sizeof(S) / sizeof(Word)];
  };
  Words words = std::bit_cast<Words>(s);
#pragma unroll
  for (size_t i = 0; i < sizeof(S) / sizeof(Word); i++)
    words.at[i] = __shfl_xor_sync(0xffffffffu, words.at[i], bits);
  return std::bit_cast<S>(words);
}
// Every lane gets the result: combine(earlier lane, later lane).
template <class S, class Combine>
TD_FN S warp_reduce(S s, Combine combine) {
#pragma unroll
  for (int bits = 1; bits < 32; bits *= 2) {
    const S other = shuffle_xor(s, bits);
    s = threadIdx.x & static_cast<unsigned>(bits) ? combine(other, s) : combine(s, other);
  }
  return s;
}

struct Group {
  uint32_t threads;  // 1, 32 or those of a block

  TD_FN uint32_t rank() const { return threadIdx.x % threads; }
  // The rows of this group: first(), first() + step(), ...
  TD_FN uint64_t first() const { return first_index() / threads; }
  TD_FN uint64_t step() const { return index_step() / threads; }

  // Every thread gets what all have, combined.
  template <class S, class Combine>
  TD_FN S reduce(S s, Combine combine) const {
    if (threads == 1) return s;
    s = warp_reduce(s, combine);
    if (threads == 32) return s;
    TD_SHARED(S, part, kMaxWarps);
    __syncthreads();  // what was there may still be read
    if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = s;
    __syncthreads();
    S all = part[0];
    for (uint32_t warp = 1; warp < threads / 32; warp++) all = combine(all, part[warp]);
    return all;
  }
};

}  // namespace taeda::device
