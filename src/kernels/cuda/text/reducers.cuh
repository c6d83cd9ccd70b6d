// What reductions compute: sums, products and counts (sums.cuh), extremes, moments, norms.
#pragma once
#include "kernels/cuda/text/sums.cuh"

namespace taeda::device {

// NaN wins over everything; of equal values the first counts.
template <class T_, bool kMax>
struct Extreme {
  using T = T_;
  struct State {
    T value;
    int64_t index;  // -1: none yet
  };
  TD_FN static bool beats(T x, T best) {
    return (kMax ? x > best : x < best) || (x != x && best == best);
  }
  TD_FN static bool is_same(T a, T b) { return a == b || (a != a && b != b); }
  TD_FN static State identity() { return {T(0), -1}; }
  TD_FN static void take(State& s, T x, int64_t index, double) {
    if (s.index < 0 || beats(x, s.value)) s = {x, index};
  }
  TD_FN static State combine(const State& a, const State& b) {
    if (b.index < 0) return a;
    if (a.index < 0 || beats(b.value, a.value)) return b;
    return is_same(a.value, b.value) && b.index < a.index ? b : a;
  }
  TD_FN static T result(const State& s, double) { return s.value; }
  // The value and its index.
  TD_FN static void finish(const ReduceArgs& a, const State& s, const Offsets<3>& at) {
    if (a.out[0]) put(a, at, 0, s.value);
    put(a, at, 1, s.index);
  }
};

// Mean and variance [Welford 1962; Chan, Golub and LeVeque 1979]. The parameter is what the number
// of elements is lessened by for the divisor.
template <class T_, bool kRoot>
struct Moments {
  using T = T_;
  struct State {
    double mean, m2, count;
  };
  TD_FN static State identity() { return {0, 0, 0}; }
  TD_FN static void take(State& s, T x, int64_t, double) {
    s.count += 1;
    const double delta = static_cast<double>(x) - s.mean;
    s.mean += delta * static_cast<double>(T(1) / static_cast<T>(s.count));
    s.m2 += delta * (static_cast<double>(x) - s.mean);
  }
  TD_FN static State combine(const State& a, const State& b) {
    if (a.count == 0) return b;
    if (b.count == 0) return a;
    const double count = a.count + b.count, delta = b.mean - a.mean;
    return {a.mean + delta * (b.count / count),
            a.m2 + b.m2 + delta * delta * (a.count * b.count / count), count};
  }
  TD_FN static void finish(const ReduceArgs& a, const State& s, const Offsets<3>& at) {
    const double free = s.count > a.parameter ? s.count - a.parameter : 0;
    const double variance = s.m2 < 0 ? 0 : s.m2 / free;
    put(a, at, 0, static_cast<T>(kRoot ? std::sqrt(variance) : variance));
    put(a, at, 1, static_cast<T>(s.count == 0 ? variance : s.mean));
  }
};

template <class T>
TD_FN double magnitude(T x) {
  if constexpr (kIsComplex<T>)
    return std::hypot(static_cast<double>(x.real()), static_cast<double>(x.imag()));
  else
    return std::abs(static_cast<double>(x));
}
template <class T>
struct RealPart {
  using type = T;
};
template <class T>
struct RealPart<std::complex<T>> {
  using type = T;
};

// The exclusive or of the elements' bits.
template <class T_>
struct Xor {
  using T = T_;
  using State = Plain<int64_t>;
  TD_FN static State identity() { return {0}; }
  TD_FN static void take(State& s, T x, int64_t, double) { s.sum ^= std::bit_cast<int64_t>(x); }
  TD_FN static State combine(const State& a, const State& b) { return {a.sum ^ b.sum}; }
  TD_FN static void finish(const ReduceArgs& a, const State& s, const Offsets<3>& at) {
    put(a, at, 0, s.sum);
  }
};

// ||x|| of order 0, 1 or 2, the parameter.
template <class T_>
struct NormSum {
  using T = T_;
  using State = Plain<double>;
  TD_FN static State identity() { return {0}; }
  TD_FN static void take(State& s, T x, int64_t, double order) {
    if (order == 0) {
      s.add(x == T(0) ? 0 : 1);
    } else if (order == 1) {
      s.add(magnitude(x));
    } else if constexpr (kIsComplex<T>) {
      const double re = x.real(), im = x.imag();
      s.add(re * re + im * im);
    } else {
      s.add(static_cast<double>(x) * static_cast<double>(x));
    }
  }
  TD_FN static State combine(const State& a, const State& b) { return {a.sum + b.sum}; }
  TD_FN static auto result(const State& s, double order) {
    return static_cast<typename RealPart<T>::type>(order == 2 ? std::sqrt(s.sum) : s.sum);
  }
  TD_FN static void finish(const ReduceArgs& a, const State& s, const Offsets<3>& at) {
    put(a, at, 0, result(s, a.parameter));
  }
};
// Of order inf for a parameter of 1, -inf for -1: the largest of the parameter times |x|.
template <class T_>
struct NormExtreme {
  using T = T_;
  using State = Plain<double>;
  static constexpr double kNone = -std::numeric_limits<double>::infinity();
  TD_FN static State identity() { return {kNone}; }
  TD_FN static void take(State& s, T x, int64_t, double sign) {
    s = combine(s, {sign * magnitude(x)});
  }
  TD_FN static State combine(const State& a, const State& b) {
    return b.sum > a.sum || b.sum != b.sum ? b : a;
  }
  TD_FN static auto result(const State& s, double sign) {
    const bool none = s.sum == kNone && sign > 0;
    return static_cast<typename RealPart<T>::type>(none ? 0 : s.sum * sign);
  }
  TD_FN static void finish(const ReduceArgs& a, const State& s, const Offsets<3>& at) {
    put(a, at, 0, result(s, a.parameter));
  }
};

// log of the sum of e^x, online: the sum is corrected as larger elements come.
template <class T_>
struct LogSumExp {
  using T = T_;
  struct State {
    T high, sum;  // the sum of e^(x - high)
  };
  TD_FN static State identity() { return {-std::numeric_limits<T>::infinity(), T(0)}; }
  TD_FN static void take(State& s, T x, int64_t, double) { s = combine(s, {x, T(1)}); }
  TD_FN static State combine(const State& a, const State& b) {
    if (b.sum == T(0)) return a;
    if (a.sum == T(0)) return b;
    if (a.high == b.high) return {a.high, a.sum + b.sum};
    if (a.high > b.high) return {a.high, a.sum + b.sum * std::exp(b.high - a.high)};
    return {b.high, b.sum + a.sum * std::exp(a.high - b.high)};
  }
  TD_FN static void finish(const ReduceArgs& a, const State& s, const Offsets<3>& at) {
    put(a, at, 0, s.high + std::log(s.sum));
  }
};

}  // namespace taeda::device
