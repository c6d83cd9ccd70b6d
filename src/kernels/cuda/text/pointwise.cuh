// Pointwise functors on a device: out_i = f(x_i, y_i, ...), the functors of kernels/pointwise on
// Lane<T>.
//
// Dense: every operand is an array of the functor's type in memory (half precision computes in
// float), read and written once, 16 bytes a thread at a time. Strided: any strides, dtypes and
// broadcasting; an element's offset comes from its index by one product for each dimension. The
// functor's text stands once in each: whole packs and the end go the same way.
#pragma once
#include "kernels/cuda/text/kernel.cuh"
// kernel.cuh first: what it defines is for the others
#include "kernels/cpu/pointwise/divide.h"
#include "kernels/cuda/text/convert.cuh"
#include "kernels/cuda/text/pack.cuh"
#include "kernels/cuda/text/pointwise_args.h"
#include "kernels/cuda/text/walk.cuh"
#if defined(__CUDACC_RTC__)
#include "kernels/cpu/simd/special.cc"  // a module has all that its kernels call
#endif

namespace taeda::device {

using cpu::lanes::Lane;

template <class T>
TD_FN Lane<T> lane(T x) {
  return Lane<T>(x);
}
// Truth values are bytes in a lane.
template <class T>
TD_FN T raw(Lane<T> x) {
  if constexpr (std::is_same_v<T, bool>)
    return x.raw != 0;
  else
    return x.raw;
}
TD_FN bool raw(bool x) { return x; }

// What input i is, if it is the same for all elements.
template <class T, class Load, int N>
TD_FN T number_of(const Numbers<N>& numbers, int i, Load load) {
  if (numbers.given >> i & 1) {
    if constexpr (std::is_same_v<T, bool>)
      return numbers.number[i][0] != 0;
    else
      return *reinterpret_cast<const T*>(numbers.number[i]);
  }
  if (numbers.repeated >> i & 1) return load();
  return T();
}
template <int N>
TD_FN bool is_number(const Numbers<N>& numbers, int i) {
  return (numbers.given | numbers.repeated) >> i & 1;
}

// K elements of input `input` as T.
template <class T, class S, int K, int N>
TD_FN Pack<T, K> inputs_of(const DenseArgs<N>& a, int input, T number, uint32_t i, bool whole) {
  Pack<T, K> result;
  if (is_number(a.numbers, input)) {
#pragma unroll
    for (int k = 0; k < K; k++) result.at[k] = number;
  } else {
    const Pack<S, K> x = load_pack<S, K>(a.in[input], i, a.n, whole);
#pragma unroll
    for (int k = 0; k < K; k++) result.at[k] = convert<T>(x.at[k]);
  }
  return result;
}

// T computes, S is in memory, Out is written.
template <class F, class T, class S, class Out, int N, size_t... I>
TD_FN void dense(const F& f, const DenseArgs<N>& a, std::index_sequence<I...>) {
  constexpr int K = pack_size(sizeof(S));
  const T numbers[N] = {
      number_of<T>(a.numbers, I, [&] { return convert<T>(*static_cast<const S*>(a.in[I])); })...};
  const uint32_t step = gridDim.x * blockDim.x * K;
  for (uint32_t i = (blockIdx.x * blockDim.x + threadIdx.x) * K; i < a.n; i += step) {
    const bool whole = a.aligned && i + K <= a.n;
    const Pack<T, K> x[N] = {inputs_of<T, S, K>(a, I, numbers[I], i, whole)...};
    Pack<Out, K> y;
#pragma unroll
    for (int k = 0; k < K; k++) y.at[k] = convert<Out>(raw(f(lane<T>(x[I].at[k])...)));
    store_pack(a.out, i, a.n, whole, y);
  }
}

template <class F, class T, int N, size_t... I>
TD_FN void strided(const F& f, const StridedArgs<N>& a, std::index_sequence<I...>) {
  const T numbers[N] = {
      number_of<T>(a.numbers, I, [&] { return load<T>(a.data[I + 1], a.types[I + 1]); })...};
  const uint32_t step = gridDim.x * blockDim.x;
  for (uint32_t i = blockIdx.x * blockDim.x + threadIdx.x; i < a.n; i += step) {
    int32_t offset[N + 1] = {};
    uint32_t rest = i;
#pragma unroll 1
    for (int d = 0; d < a.ndim; d++) {
      const uint32_t quotient = divide(rest, a.sizes[d]);
      const int32_t index = static_cast<int32_t>(rest - quotient * a.sizes[d].value);
#pragma unroll
      for (int k = 0; k <= N; k++) offset[k] += index * a.strides[d][k];
      rest = quotient;
    }
    const T x[N] = {is_number(a.numbers, I)
                        ? numbers[I]
                        : load<T>(a.data[I + 1] + offset[I + 1], a.types[I + 1])...};
    store(a.data[0] + offset[0], a.types[0], raw(f(lane<T>(x[I])...)));
  }
}

// The functor of copies and fills.
struct Same {
  template <class T>
  TD_FN T operator()(T x) const {
    return x;
  }
};

template <class F, class T, class S, class Out, int N>
TD_FN void dense_kernel(const PointwiseArgs<DenseArgs<N>, F>& args) {
  dense<F, T, S, Out, N>(args.functor, args.loop, std::make_index_sequence<N>());
}
template <class F, class T, int N>
TD_FN void strided_kernel(const PointwiseArgs<StridedArgs<N>, F>& args) {
  strided<F, T, N>(args.functor, args.loop, std::make_index_sequence<N>());
}

}  // namespace taeda::device
