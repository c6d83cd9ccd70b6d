// Pack: elements beside each other that a thread reads and writes at a time.
#pragma once
#include "kernels/cuda/text/kernel.cuh"

namespace taeda::device {

template <class S, int K>
struct alignas(sizeof(S) * K) Pack {
  S at[K];
};

// Elements i to i + K of an array of n, fewer at its end.
template <class S, int K>
TD_FN Pack<S, K> load_pack(const void* from, uint32_t i, uint32_t n, bool whole) {
  const S* const x = static_cast<const S*>(from);
  if (whole) return *reinterpret_cast<const Pack<S, K>*>(x + i);
  Pack<S, K> pack;
#pragma unroll
  for (int k = 0; k < K; k++) pack.at[k] = x[i + k < n ? i + k : n - 1];
  return pack;
}
template <class S, int K>
TD_FN void store_pack(void* to, uint32_t i, uint32_t n, bool whole, const Pack<S, K>& pack) {
  S* const y = static_cast<S*>(to);
  if (whole) {
    *reinterpret_cast<Pack<S, K>*>(y + i) = pack;
    return;
  }
#pragma unroll
  for (int k = 0; k < K; k++) {
    if (i + k < n) y[i + k] = pack.at[k];
  }
}

}  // namespace taeda::device
