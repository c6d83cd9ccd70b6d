// Dense pointwise functors (pointwise.cuh) for several calls in one launch: out_i = f(x_i, y_i,
// ...) of each. A block goes over chunks, whatever call they are of; arrays are read and written
// once, 16 bytes a thread at a time.
#pragma once
#include "kernels/cuda/text/pointwise.cuh"
#include "kernels/cuda/text/pointwise_list_args.h"

namespace taeda::device {

// What input i of a call is, if it is the same for all elements.
template <class T, class S, int N>
TD_FN T list_number(const ListCall<N>& call, int i) {
  if constexpr (sizeof(T) > sizeof(void*)) {
    if (call.given >> i & 1) return T(*reinterpret_cast<const double*>(&call.in[i]));
  } else {
    if (call.given >> i & 1) return *reinterpret_cast<const T*>(&call.in[i]);
  }
  if (!(call.repeated >> i & 1)) return T();
  if (call.single >> i & 1) return convert<T>(*static_cast<const float*>(call.in[i]));
  return convert<T>(*static_cast<const S*>(call.in[i]));
}

// Elements i to i + K of input `input`, of an array that ends at `end`.
template <class T, class S, int K, int N>
TD_FN Pack<T, K> list_inputs(const ListCall<N>& call, int input, T number, uint32_t i, uint32_t end,
                             bool whole) {
  Pack<T, K> result;
  if ((call.given | call.repeated) >> input & 1) {
#pragma unroll
    for (int k = 0; k < K; k++) result.at[k] = number;
  } else {
    const Pack<S, K> x = load_pack<S, K>(call.in[input], i, end, whole);
#pragma unroll
    for (int k = 0; k < K; k++) result.at[k] = convert<T>(x.at[k]);
  }
  return result;
}

// T computes, S is in memory.
template <class F, class T, class S, int N, size_t... I>
TD_FN void list(const F& f, const ListArgs<N>& a, std::index_sequence<I...>) {
  constexpr int K = pack_size(sizeof(S));
  uint32_t at = 0;
  for (uint32_t chunk = blockIdx.x; chunk < a.chunks; chunk += gridDim.x) {
    while (at + 1 < a.count && a.calls[at + 1].first <= chunk) at++;
    const ListCall<N>& call = a.calls[at];
    const T numbers[N] = {list_number<T, S>(call, I)...};
    const uint32_t begin = (chunk - call.first) * kListChunk;
    const uint32_t end = call.n - begin < kListChunk ? call.n : begin + kListChunk;
    for (uint32_t i = begin + threadIdx.x * K; i < end; i += blockDim.x * K) {
      const bool whole = call.aligned && i + K <= end;
      const Pack<T, K> x[N] = {list_inputs<T, S, K>(call, I, numbers[I], i, end, whole)...};
      Pack<S, K> y;
#pragma unroll
      for (int k = 0; k < K; k++) y.at[k] = convert<S>(raw(f(lane<T>(x[I].at[k])...)));
      store_pack(call.out, i, end, whole, y);
    }
  }
}

template <class F, class T, class S, int N>
TD_FN void list_kernel(const PointwiseArgs<ListArgs<N>, F>& args) {
  list<F, T, S>(args.functor, args.loop, std::make_index_sequence<N>());
}

}  // namespace taeda::device
