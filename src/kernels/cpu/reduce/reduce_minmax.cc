// amax, amin, max, min, argmax, argmin, aminmax.
//
// NaN wins over everything; of equal values the first counts. An index search looks for the block's
// extreme first and for its index only when it beats what was seen before.
#include "core/with_dtype.h"
#include "kernels/cpu/reduce/reducers-inl.h"
#include "kernels/cpu/rows/rows.h"

namespace taeda::cpu {
namespace {

// The type that values are compared in.
constexpr DType order_type(DType t) {
  if (t == DType::kBool) return DType::kUInt8;
  return is_reduced_floating(t) ? DType::kFloat32 : t;
}
template <class F>
void with_order(DType t, F&& f) {
  with_dtype<Join<Integers, WideFloating>>(order_type(t), f);
}

template <class T, bool kMax>
T worst() {
  if constexpr (std::is_floating_point_v<T>)
    return (kMax ? -1 : 1) * std::numeric_limits<T>::infinity();
  else
    return kMax ? std::numeric_limits<T>::lowest() : std::numeric_limits<T>::max();
}
template <class T>
bool is_nan(T x) {
  return x != x;
}
// Whether x replaces `best`.
template <bool kMax, class T>
bool beats(T x, T best) {
  return kMax ? x > best || (is_nan(x) && !is_nan(best)) : x < best || (is_nan(x) && !is_nan(best));
}

template <class T, bool kMax>
struct Extreme {
  using State = T;
  static void init(void* states, int64_t n) {
    for (int64_t j = 0; j < n; j++) static_cast<T*>(states)[j] = worst<T, kMax>();
  }
  static T of_row(const void* x, int64_t n) {
    const OrderTable<T>& t = order_table<T>();
    return (kMax ? t.max : t.min)(static_cast<const T*>(x), n);
  }
  static void of_columns(T* acc, const void* x, int64_t n, int64_t rows, int64_t stride) {
    const OrderTable<T>& t = order_table<T>();
    (kMax ? t.max_columns : t.min_columns)(acc, static_cast<const T*>(x), n, rows, stride);
  }
  static void row(void* state, const void* x, int64_t n, int64_t) {
    T& best = *static_cast<T*>(state);
    const T v = of_row(x, n);
    if (beats<kMax>(v, best)) best = v;
  }
  static void columns(void* states, const void* x, int64_t n, int64_t rows, int64_t stride,
                      int64_t) {
    of_columns(static_cast<T*>(states), x, n, rows, stride);
  }
  static void combine(void* states, const void* others, int64_t n) {
    for (int64_t j = 0; j < n; j++) {
      const T v = static_cast<const T*>(others)[j];
      if (beats<kMax>(v, static_cast<T*>(states)[j])) static_cast<T*>(states)[j] = v;
    }
  }
  static T result(const T& s, int64_t, const void*) { return s; }
  static constexpr Reducer kReducer{kDTypeOf<T>, sizeof(T), init, row, columns, combine};
};

template <class T>
struct ValueAndIndex {
  T value;
  int64_t index;  // -1: nothing seen
};

template <class T, bool kMax>
struct ArgExtreme {
  using State = ValueAndIndex<T>;
  static void init(void* states, int64_t n) {
    for (int64_t j = 0; j < n; j++) static_cast<State*>(states)[j] = {worst<T, kMax>(), -1};
  }
  static void row(void* state, const void* x, int64_t n, int64_t index) {
    State& s = *static_cast<State*>(state);
    const T v = Extreme<T, kMax>::of_row(x, n);
    if (s.index < 0 || beats<kMax>(v, s.value))
      s = {v, index + order_table<T>().find(static_cast<const T*>(x), v, n)};
  }
  static void columns(void* states, const void* data, int64_t n, int64_t rows, int64_t stride,
                      int64_t index) {
    const OrderTable<T>& t = order_table<T>();
    State* s = static_cast<State*>(states);
    T best[kReduceTile];
    OrderIndex<T> local[kReduceTile];
    for (int64_t i = 0; i < rows; i += kMaxOrderIndices) {
      (kMax ? t.argmax : t.argmin)(best, local, static_cast<const T*>(data) + i * stride, n,
                                   std::min(kMaxOrderIndices, rows - i), stride);
      for (int64_t j = 0; j < n; j++) {
        if (s[j].index < 0 || beats<kMax>(best[j], s[j].value))
          s[j] = {best[j], index + i + local[j]};
      }
    }
  }
  static void combine(void* states, const void* others, int64_t n) {
    for (int64_t j = 0; j < n; j++) {
      State& s = static_cast<State*>(states)[j];
      const State& o = static_cast<const State*>(others)[j];
      if (o.index >= 0 && (s.index < 0 || beats<kMax>(o.value, s.value))) s = o;
    }
  }
  static void finalize(void* const* outs, const void* states, int64_t n, int64_t, const void*) {
    for (int64_t j = 0; j < n; j++) {
      const State& s = static_cast<const State*>(states)[j];
      static_cast<int64_t*>(outs[0])[j] = s.index;
      if (outs[1]) static_cast<T*>(outs[1])[j] = s.value;
    }
  }
  static constexpr Reducer kReducer{kDTypeOf<T>, sizeof(State),   init, row, columns,
                                    combine,     /*ordered=*/true};
};

template <bool kMax>
void extreme(const View& out, const View& self, IntSpan dims) {
  with_order(self.dtype, [&](auto zero) {
    using E = Extreme<decltype(zero), kMax>;
    const ReduceResult result{&out, E::kReducer.compute};
    reduce(E::kReducer, self, dims, {&result, 1},
           finalize_each<typename E::State, typename E::State, E::result>);
  });
}

template <bool kMax>
void arg_extreme(const View* values, const View& indices, const View& self, IntSpan dims) {
  with_order(self.dtype, [&](auto zero) {
    using A = ArgExtreme<decltype(zero), kMax>;
    const ReduceResult results[] = {{&indices, DType::kInt64}, {values, A::kReducer.compute}};
    reduce(A::kReducer, self, dims, {results, values ? 2u : 1u}, A::finalize);
  });
}

}  // namespace

void amax(const View& out, const View& self, IntSpan dim, bool) { extreme<true>(out, self, dim); }
void amin(const View& out, const View& self, IntSpan dim, bool) { extreme<false>(out, self, dim); }
void max_dim(const View& values, const View& indices, const View& self, int64_t dim, bool) {
  arg_extreme<true>(&values, indices, self, {&dim, 1});
}
void min_dim(const View& values, const View& indices, const View& self, int64_t dim, bool) {
  arg_extreme<false>(&values, indices, self, {&dim, 1});
}
// Without `dim`: the index in the flattened tensor, which the caller has made contiguous.
void argmax(const View& out, const View& self, OptInt dim, bool) {
  arg_extreme<true>(nullptr, out, self, dim ? IntSpan(&*dim, 1) : IntSpan());
}
void argmin(const View& out, const View& self, OptInt dim, bool) {
  arg_extreme<false>(nullptr, out, self, dim ? IntSpan(&*dim, 1) : IntSpan());
}

}  // namespace taeda::cpu
