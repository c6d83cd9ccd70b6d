// dense<Load, T, N>: a pointwise functor over N dense arrays of T, one number at a time (see
// dense-inl.h for vectors).
//
// `Load::load<T>(params)` makes the functor from the parameters that the operator's caller laid
// out. The loop is written so that the compiler vectorises simple integer functors with the
// baseline instruction set.
#pragma once

#include <utility>

#include "kernels/cpu/lane.h"
#include "taeda/scalar.h"

namespace taeda::cpu::lanes {

template <class T>
TD_FN T raw(Lane<T> x) {
  return x.raw;
}
TD_FN bool raw(bool x) { return x; }

template <class T, class F, size_t... I>
TD_FN void dense_loop(const F& f, void* out, const void* const* in, int64_t n,
                      std::index_sequence<I...>) {
  const T* const x[] = {static_cast<const T*>(in[I])...};
  using Out = decltype(raw(f(Lane<T>(x[I][0])...)));
  Out* y = static_cast<Out*>(out);
#pragma GCC ivdep
  for (int64_t i = 0; i < n; i++) y[i] = raw(f(Lane<T>(x[I][i])...));
}

template <class Load, class T, int N>
[[gnu::optimize("O3")]] void dense(void* out, const void* const* in, int64_t n,
                                   const void* params) {
  dense_loop<T>(Load::template load<T>(params), out, in, n, std::make_index_sequence<N>());
}

}  // namespace taeda::cpu::lanes
