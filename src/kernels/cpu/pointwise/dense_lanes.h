// dense<Load, T, N>: a pointwise functor over N dense arrays of T, one number at a time (see
// dense-inl.h for vectors).
//
// `Load::load<T>(params)` makes the functor from the parameters that the operator's caller laid
// out. The loop is written so that the compiler vectorises simple integer functors with the
// baseline instruction set.
#pragma once

#include <algorithm>
#include <utility>

#include "kernels/cpu/pointwise/divide.h"
#include "kernels/cpu/simd/lane.h"
#include "taeda/scalar.h"

namespace taeda::cpu::lanes {

// What holds a T in memory.
template <class T>
using Stored = std::conditional_t<std::is_same_v<T, bool>, Bool, T>;

template <class T>
TD_FN Lane<T> load(Stored<T> x) {
  if constexpr (std::is_same_v<T, bool>)
    return Lane<T>::of_bits(std::min<uint8_t>(x.byte, 1));  // one instruction, as != 0 is not
  else
    return Lane<T>(x);
}
template <class T>
TD_FN LaneRaw<T> raw(Lane<T> x) {
  return x.raw;
}
TD_FN bool raw(bool x) { return x; }

template <class T, class F, size_t... I>
auto output_of(const F& f, std::index_sequence<I...>)
    -> decltype(raw(f((static_cast<void>(I), Lane<T>())...)));

template <class T, class F, size_t... I>
TD_FN void dense_loop(const F& f, void* out, const void* const* in, int64_t n,
                      std::index_sequence<I...>) {
  const Stored<T>* const x[] = {static_cast<const Stored<T>*>(in[I])...};
  using Out = decltype(output_of<T>(f, std::index_sequence<I...>()));
  Out* y = static_cast<Out*>(out);
#pragma GCC ivdep
  for (int64_t i = 0; i < n; i++) y[i] = raw(f(load<T>(x[I][i])...));
}

// Repeated inputs are written out in blocks, so that one loop serves all.
template <class Load, class T, int N>
TD_FN void dense_body(void* out, const void* const* in, int64_t n, const void* params,
                      uint32_t repeated) {
  const auto f = Load::template load<T>(params);
  constexpr auto kInputs = std::make_index_sequence<N>();
  using Out = decltype(output_of<T>(f, kInputs));
  constexpr int64_t kBlock = 2048 / sizeof(T);
  Stored<T> copies[N][kBlock];
  for (int k = 0; k < N; k++) {
    if (repeated >> k & 1)
      std::fill_n(copies[k], std::min(n, kBlock), *static_cast<const Stored<T>*>(in[k]));
  }
  const int64_t block = repeated ? kBlock : n;  // one loop for both: it is inlined once
  for (int64_t i = 0; i < n; i += block) {
    const void* at[N];
    for (int k = 0; k < N; k++)
      at[k] = repeated >> k & 1 ? copies[k] : static_cast<const Stored<T>*>(in[k]) + i;
    dense_loop<T>(f, static_cast<Out*>(out) + i, at, std::min(block, n - i), kInputs);
  }
}

// Whether a functor divides; integers are then divided by vectors.
template <class Load, class T>
concept DividesIntegers = kIsInteger<T> && requires {
  decltype(Load::template load<T>(nullptr))::kIntegers;
};
template <class Load, class T, int N>
  requires DividesIntegers<Load, T>
[[gnu::visibility("hidden")]] void dense(void* out, const void* const* in, int64_t n,
                                         const void* params, uint32_t repeated) {
  divide_integers(decltype(Load::template load<T>(params))::kIntegers, kDTypeOf<T>, out, in[0],
                  in[1], n, repeated);
}

// Other integers and complex numbers are always computed here, floats only on machines without
// vectors.
template <class Load, class T, int N>
  requires(!std::is_floating_point_v<T> && !DividesIntegers<Load, T>)
[[gnu::optimize("O3"), gnu::visibility("hidden")]] void dense(void* out, const void* const* in,
                                                              int64_t n, const void* params,
                                                              uint32_t repeated) {
  dense_body<Load, T, N>(out, in, n, params, repeated);
}
template <class Load, class T, int N>
  requires std::is_floating_point_v<T>
[[gnu::visibility("hidden")]] void dense(void* out, const void* const* in, int64_t n,
                                         const void* params, uint32_t repeated) {
  dense_body<Load, T, N>(out, in, n, params, repeated);
}

}  // namespace taeda::cpu::lanes
