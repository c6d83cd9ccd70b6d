// Vector norms over any dimensions: ||x||_0 (count of nonzero), ||x||_1, ||x||_2, ||x||_inf and
// ||x||_-inf.
#include <cstring>

#include "kernels/cpu/reduce/reducers-inl.h"
#include "kernels/cpu/rows/rows.h"

namespace taeda::cpu {
namespace {

enum class Order { kZero, kOne, kTwo, kMax, kMin };

template <class T_, Order kOrder>
struct Norm {
  using T = T_;
  using State = double;
  static constexpr bool kComplex = is_complex(kDTypeOf<T>);
  static State identity() {
    return kOrder == Order::kMin ? std::numeric_limits<double>::infinity() : 0;
  }
  static void accumulate(State& s, const T& x) {
    if constexpr (kOrder == Order::kZero)
      s += x != T(0);
    else if constexpr (kOrder == Order::kOne)
      s += std::abs(x);
    else if constexpr (kOrder == Order::kTwo && kComplex)
      s += std::norm(std::complex<double>(x));
    else if constexpr (kOrder == Order::kTwo)
      s += static_cast<double>(x) * static_cast<double>(x);
    else
      combine(s, std::abs(x));
  }
  static void combine(State& s, State other) {
    if constexpr (kOrder == Order::kMax)
      s = other > s || other != other ? other : s;
    else if constexpr (kOrder == Order::kMin)
      s = other < s || other != other ? other : s;
    else
      s += other;
  }
  static double of_row(const T* x, int64_t n) {
    const RowTable<T>& t = row_table<T>();
    if constexpr (kOrder == Order::kOne)
      return t.sum_abs(x, n);
    else if constexpr (kOrder == Order::kTwo)
      return t.sum_squares(x, n);
    else
      return t.max_abs(x, n);
  }
  static void row(void* state, const void* x, int64_t n, int64_t) {
    combine(*static_cast<State*>(state), of_row(static_cast<const T*>(x), n));
  }
  template <class R>
  static void finalize(void* const* outs, const void* states, int64_t n, int64_t, const void*) {
    for (int64_t j = 0; j < n; j++) {
      const double s = static_cast<const double*>(states)[j];
      static_cast<R*>(outs[0])[j] = static_cast<R>(kOrder == Order::kTwo ? std::sqrt(s) : s);
    }
  }
};

template <class T, Order kOrder>
void run(const View& out, const View& self, IntSpan dims) {
  using N = Norm<T, kOrder>;
  Reducer reducer = PolicyReducer<N>::kReducer;
  if constexpr (!N::kComplex && kOrder != Order::kZero && kOrder != Order::kMin)
    reducer.row = N::row;
  using R = std::conditional_t<std::is_same_v<T, double> || std::is_same_v<T, std::complex<double>>,
                               double, float>;
  const ReduceResult result{&out, kDTypeOf<R>};
  reduce(reducer, self, dims, {&result, 1}, N::template finalize<R>);
}

template <class T>
void run(const View& out, const View& self, double order, IntSpan dims) {
  if (order == 0)
    run<T, Order::kZero>(out, self, dims);
  else if (order == 1)
    run<T, Order::kOne>(out, self, dims);
  else if (order == 2)
    run<T, Order::kTwo>(out, self, dims);
  else if (order > 0)
    run<T, Order::kMax>(out, self, dims);
  else
    run<T, Order::kMin>(out, self, dims);
}

}  // namespace

// `order` is one of 0, 1, 2, inf, -inf. With `dtype`, elements are converted to it first: out.dtype
// is its real type.
void vector_norm(const View& out, const View& self, double order, OptInts dim, bool, OptDType) {
  const bool wide = out.dtype == DType::kFloat64;
  const IntSpan dims = dims_or_all(dim);
  if (is_complex(self.dtype)) {
    if (wide)
      run<std::complex<double>>(out, self, order, dims);
    else
      run<std::complex<float>>(out, self, order, dims);
  } else if (wide) {
    run<double>(out, self, order, dims);
  } else {
    run<float>(out, self, order, dims);
  }
}

}  // namespace taeda::cpu
