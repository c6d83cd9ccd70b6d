// Reducers from policies: a policy names the element type T, the State, and what one element and
// one state do to a state. The loops here are the plain form; types with vector kernels replace
// `row` and `columns`.
#pragma once

#include <cmath>
#include <limits>

#include "kernels/cpu/reduce/reduce.h"
#include "kernels/cpu/rows/row_io.h"
#include "kernels/optional.h"

namespace taeda::cpu {

// P: using T, State; static State identity(const void* params);
//    static void accumulate(State&, const T&, const void* params); static void combine(State&,
//    const State&).
template <class P>
struct PolicyReducer {
  using T = typename P::T;
  using State = typename P::State;
  static_assert(sizeof(State) <= kMaxStateSize);

  static void init(void* states, int64_t n) {
    for (int64_t j = 0; j < n; j++) static_cast<State*>(states)[j] = P::identity();
  }
  static void row(void* state, const void* data, int64_t n, int64_t) {
    constexpr int64_t kLanes = 8;
    const T* x = static_cast<const T*>(data);
    State lanes[kLanes];
    for (State& lane : lanes) lane = P::identity();
    int64_t i = 0;
    for (; i + kLanes <= n; i += kLanes) {
      for (int64_t k = 0; k < kLanes; k++) P::accumulate(lanes[k], x[i + k]);
    }
    for (; i < n; i++) P::accumulate(lanes[0], x[i]);
    for (int64_t width = 1; width < kLanes; width *= 2) {
      for (int64_t k = 0; k < kLanes; k += 2 * width) P::combine(lanes[k], lanes[k + width]);
    }
    P::combine(*static_cast<State*>(state), lanes[0]);
  }
  static void columns(void* states, const void* data, int64_t n, int64_t rows, int64_t stride,
                      int64_t) {
    const T* x = static_cast<const T*>(data);
    State* s = static_cast<State*>(states);
    for (int64_t i = 0; i < rows; i++) {
      for (int64_t j = 0; j < n; j++) P::accumulate(s[j], x[i * stride + j]);
    }
  }
  static void combine(void* states, const void* others, int64_t n) {
    for (int64_t j = 0; j < n; j++)
      P::combine(static_cast<State*>(states)[j], static_cast<const State*>(others)[j]);
  }
  static constexpr Reducer kReducer{kDTypeOf<T>, sizeof(State), init, row, columns, combine};
};

inline IntSpan dims_or_all(const OptInts& dims) { return dims ? *dims : IntSpan(); }

// Writes states as results of type R: f(state, count, params) for each.
template <class State, class R, R (*f)(const State&, int64_t, const void*)>
void finalize_each(void* const* outs, const void* states, int64_t n, int64_t count,
                   const void* params) {
  for (int64_t j = 0; j < n; j++)
    static_cast<R*>(outs[0])[j] = f(static_cast<const State*>(states)[j], count, params);
}

// Elements that a reduction over `dims` of `x` takes into each result.
inline int64_t reduced_count(const View& x, IntSpan dims) {
  if (dims.empty()) return x.numel;
  int64_t n = 1;
  for (int64_t d : dims) n *= x.ndim() ? x.sizes[static_cast<size_t>(d)] : 1;
  return n;
}

}  // namespace taeda::cpu
