// What reductions compute, first part: sums, products and counts.
#pragma once
#include "kernels/cuda/text/reduce.cuh"

namespace taeda::device {

// A sum of doubles with what rounding left out [Knuth 1969, 4.2.2].
struct Compensated {
  double sum, error;
  TD_FN void add(double x) {
    const double t = sum + x, z = t - sum;
    const double e = (sum - (t - z)) + (x - z);
    sum = t;
    if (std::isfinite(e)) error += e;
  }
  TD_FN void add(const Compensated& other) {
    add(other.sum);
    error += other.error;
  }
  TD_FN double total() const { return sum + error; }
};
template <class A>
struct Plain {
  A sum;
  TD_FN void add(A x) { sum = sum + x; }
  TD_FN void add(const Plain& other) { add(other.sum); }
  TD_FN A total() const { return sum; }
};
struct Wrapping {  // int64, modulo 2^64
  uint64_t sum;
  TD_FN void add(int64_t x) { sum += static_cast<uint64_t>(x); }
  TD_FN void add(const Wrapping& other) { sum += other.sum; }
  TD_FN int64_t total() const { return static_cast<int64_t>(sum); }
};
struct TwoSums {
  double first, second;
};
TD_FN TwoSums add_sums(const TwoSums& a, const TwoSums& b) {
  return {a.first + b.first, a.second + b.second};
}
// float is added in double, complex numbers as their parts are.
template <class T>
using SumState = std::conditional_t<
    std::is_same_v<T, float>, Plain<double>,
    std::conditional_t<std::is_same_v<T, double>, Compensated,
                       std::conditional_t<kIsComplex<T>, Plain<std::complex<double>>, Wrapping>>>;

// The parameter is what the sum is divided by.
template <class T_, bool kSkipNaN = false>
struct Sum {
  using T = T_;
  using State = SumState<T>;
  TD_FN static State identity() { return State{}; }
  TD_FN static void take(State& s, T x, int64_t, double) {
    if (kSkipNaN && !(x == x)) return;
    if constexpr (kIsComplex<T>)
      s.add(std::complex<double>(x));
    else
      s.add(x);
  }
  TD_FN static State combine(State a, const State& b) {
    a.add(b);
    return a;
  }
  TD_FN static void finish(const ReduceArgs& a, const State& s, const Offsets<3>& at) {
    if constexpr (std::is_integral_v<T>)
      put(a, at, 0, s.total());
    else
      put(a, at, 0, static_cast<T>(s.total() / a.parameter));
  }
};

template <class T_>
struct Product {
  using T = T_;
  using A = std::conditional_t<
      std::is_same_v<T, float>, double,
      std::conditional_t<std::is_same_v<T, std::complex<float>>, std::complex<double>,
                         std::conditional_t<std::is_integral_v<T>, uint64_t, T>>>;
  struct State {
    A value;
  };
  TD_FN static State identity() { return {A(1)}; }
  TD_FN static void take(State& s, T x, int64_t, double) { s.value = s.value * static_cast<A>(x); }
  TD_FN static State combine(const State& a, const State& b) { return {a.value * b.value}; }
  TD_FN static void finish(const ReduceArgs& a, const State& s, const Offsets<3>& at) {
    put(a, at, 0, static_cast<T>(s.value));
  }
};

// How many are not zero; the parameter says what of it is wanted: 0 the number, 1 whether there is
// one, 2 whether all are.
template <class T_>
struct Nonzero {
  using T = T_;
  struct State {
    int64_t count, zeros;
  };
  TD_FN static State identity() { return {0, 0}; }
  TD_FN static void take(State& s, T x, int64_t, double) {
    const bool zero = x == T(0);
    s.count += !zero;
    s.zeros += zero;
  }
  TD_FN static State combine(const State& a, const State& b) {
    return {a.count + b.count, a.zeros + b.zeros};
  }
  TD_FN static void finish(const ReduceArgs& a, const State& s, const Offsets<3>& at) {
    put(a, at, 0,
        a.parameter == 0 ? s.count
                         : static_cast<int64_t>(a.parameter == 1 ? s.count > 0 : s.zeros == 0));
  }
};

}  // namespace taeda::device
