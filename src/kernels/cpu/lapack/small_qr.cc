#include "kernels/cpu/lapack/small_qr.h"

#include <algorithm>
#include <cmath>
#include <limits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/lapack/small_qr.cc"
#include "kernels/cpu/simd/simd.h"

HWY_BEFORE_NAMESPACE();
namespace taeda::cpu::HWY_NAMESPACE {
namespace {

using std::conj;
TD_FN float conj(float x) { return x; }
TD_FN double conj(double x) { return x; }
// a b: of finite numbers, as what LAPACK's routines do.
template <class T>
TD_FN T product(T a, T b) {
  return a * b;
}
template <class T>
TD_FN std::complex<T> product(std::complex<T> a, std::complex<T> b) {
  return {a.real() * b.real() - a.imag() * b.imag(), a.real() * b.imag() + a.imag() * b.real()};
}

// x^H y
template <class T>
TD_FN T dot(const T* x, const T* y, int n) {
  constexpr int kLanes = static_cast<int>(Vec<T>::size());
  Vec<T> sum = 0;
  int i = 0;
  for (; i + kLanes <= n; i += kLanes) sum = fma(load(x + i), load(y + i), sum);
  if (i < n) sum = fma(load_n(x + i, n - i), load_n(y + i, n - i), sum);
  return hn::GetLane(hn::SumOfLanes(typename Vec<T>::Tag(), sum.raw));
}
// y += s x, or y = s x without `adds`.
template <bool adds, class T>
TD_FN void axpy(T s, const T* x, T* y, int n) {
  constexpr int kLanes = static_cast<int>(Vec<T>::size());
  const Vec<T> scale = s;
  int i = 0;
  for (; i + kLanes <= n; i += kLanes)
    store(y + i, adds ? fma(scale, load(x + i), load(y + i)) : scale * load(x + i));
  if (i >= n) return;
  const Vec<T> v = load_n(x + i, n - i);
  store_n(y + i, adds ? fma(scale, v, load_n(y + i, n - i)) : scale * v, n - i);
}

// Of complex numbers, whose real and imaginary parts alternate.
#if HWY_TARGET == HWY_SCALAR
template <class T>
TD_FN std::complex<T> dot(const std::complex<T>* x, const std::complex<T>* y, int n) {
  std::complex<T> sum = 0;
  for (int i = 0; i < n; i++) sum += product(conj(x[i]), y[i]);
  return sum;
}
template <bool adds, class T>
TD_FN void axpy(std::complex<T> s, const std::complex<T>* x, std::complex<T>* y, int n) {
  for (int i = 0; i < n; i++) y[i] = adds ? y[i] + product(s, x[i]) : product(s, x[i]);
}
#else
template <class T>
TD_FN Vec<T> other_parts(Vec<T> v) {
  return hn::Reverse2(typename Vec<T>::Tag(), v.raw);
}
// a in even lanes, b in odd ones.
template <class T>
TD_FN Vec<T> alternating(T a, T b) {
  const typename Vec<T>::Tag d;
  return hn::OddEven(hn::Set(d, b), hn::Set(d, a));
}
template <class T>
TD_FN std::complex<T> dot(const std::complex<T>* x, const std::complex<T>* y, int n) {
  constexpr int kLanes = static_cast<int>(Vec<T>::size());
  const T *const p = reinterpret_cast<const T*>(x), *const q = reinterpret_cast<const T*>(y);
  Vec<T> same = 0, across = 0;
  const auto add = [&](Vec<T> a, Vec<T> b) HWY_ATTR {
    same = fma(a, b, same);
    across = fma(a, other_parts(b), across);
  };
  int i = 0;
  for (; i + kLanes <= 2 * n; i += kLanes) add(load(p + i), load(q + i));
  if (i < 2 * n) add(load_n(p + i, 2 * n - i), load_n(q + i, 2 * n - i));
  const typename Vec<T>::Tag d;
  return {hn::GetLane(hn::SumOfLanes(d, same.raw)),
          hn::GetLane(hn::SumOfLanes(d, (across * alternating<T>(1, -1)).raw))};
}
template <bool adds, class T>
TD_FN void axpy(std::complex<T> s, const std::complex<T>* x, std::complex<T>* y, int n) {
  constexpr int kLanes = static_cast<int>(Vec<T>::size());
  const T* const p = reinterpret_cast<const T*>(x);
  T* const q = reinterpret_cast<T*>(y);
  const Vec<T> same = s.real(), across = alternating<T>(-s.imag(), s.imag());
  const auto scaled = [&](Vec<T> v) HWY_ATTR { return fma(across, other_parts(v), same * v); };
  int i = 0;
  for (; i + kLanes <= 2 * n; i += kLanes)
    store(q + i, adds ? load(q + i) + scaled(load(p + i)) : scaled(load(p + i)));
  if (i >= 2 * n) return;
  const Vec<T> v = scaled(load_n(p + i, 2 * n - i));
  store_n(q + i, adds ? load_n(q + i, 2 * n - i) + v : v, 2 * n - i);
}
#endif

// The Euclidean norm; of numbers whose squares leave the range, by their ratios to the largest.
template <class T>
T norm(const T* x, int n) {
  const T square = dot(x, x, n);
  if (square > std::numeric_limits<T>::min() / std::numeric_limits<T>::epsilon() &&
      square < std::numeric_limits<T>::max())
    return std::sqrt(square);
  T largest = 0;
  for (int i = 0; i < n; i++) largest = std::max(largest, std::abs(x[i]));
  if (!(largest > 0) || !(largest < kInfOf<T>)) return std::sqrt(square);
  T sum = 0;
  for (int i = 0; i < n; i++) sum += (x[i] / largest) * (x[i] / largest);
  return largest * std::sqrt(sum);
}
template <class T>
T norm(const std::complex<T>* x, int n) {
  return norm(reinterpret_cast<const T*>(x), 2 * n);
}

// (I - tau v v^H) applied to `columns` columns.
template <class T>
HWY_NOINLINE void reflect(T tau, const T* v, T* a, int n, int columns, int64_t stride) {
  for (int j = 0; j < columns; j++, a += stride) axpy<true>(-product(tau, dot(v, a, n)), v, a, n);
}

// H^H (first, rest) = (beta, 0): sets tau, and v behind its leading 1 in the place of what is
// behind `first`.
template <class T>
T make_reflector(T* v, int n, T& tau) {
  const T rest = norm(v + 1, n - 1), first = v[0];
  tau = 0;
  if (rest == 0) return first;
  const T beta = -std::copysign(std::hypot(first, rest), first);
  tau = (beta - first) / beta;
  const T inverse = 1 / (first - beta);
  if (std::isfinite(inverse)) {
    axpy<false>(inverse, v + 1, v + 1, n - 1);
  } else {
    for (int i = 1; i < n; i++) v[i] /= first - beta;
  }
  return beta;
}
template <class T>
std::complex<T> make_reflector(std::complex<T>* v, int n, std::complex<T>& tau) {
  const std::complex<T> first = v[0];
  const T rest = norm(v + 1, n - 1);
  tau = 0;
  if (rest == 0 && first.imag() == 0) return first;
  const T beta = -std::copysign(std::hypot(std::abs(first), rest), first.real());
  tau = {(beta - first.real()) / beta, -first.imag() / beta};
  const std::complex<T> inverse = T(1) / (first - beta);
  if (std::isfinite(std::abs(inverse))) {
    axpy<false>(inverse, v + 1, v + 1, n - 1);
  } else {
    for (int i = 1; i < n; i++) v[i] /= first - beta;
  }
  return beta;
}

template <class T>
void factor(T* a, int rows, int columns, T* tau) {
  for (int k = 0; k < std::min(rows, columns); k++) {
    T* const v = a + int64_t{k} * rows + k;
    const T beta = make_reflector(v, rows - k, tau[k]);
    if (tau[k] != T(0)) {
      v[0] = 1;
      reflect(conj(tau[k]), v, v + rows, rows - k, columns - k - 1, rows);
    }
    v[0] = beta;
  }
}

// Backwards: H_k changes rows and columns from k on only.
template <class T>
void generate(T* a, int rows, int columns, int reflectors, const T* tau) {
  for (int j = reflectors; j < columns; j++) {
    T* const column = a + int64_t{j} * rows;
    std::fill(column, column + rows, T(0));
    column[j] = 1;
  }
  for (int k = reflectors - 1; k >= 0; k--) {
    T* const column = a + int64_t{k} * rows;
    T* const v = column + k;
    v[0] = 1;
    reflect(tau[k], v, v + rows, rows - k, columns - k - 1, rows);
    axpy<false>(-tau[k], v + 1, v + 1, rows - k - 1);
    v[0] = T(1) - tau[k];
    std::fill(column, v, T(0));
  }
}

// other <- Q other, other Q, or these with Q^H: reflectors from the last one on for the first and
// the last of the four. `v` is put back.
template <class T>
void multiply(T* v, int n, int count, const T* tau, T* other, int rows, int columns, bool left,
              bool adjoint) {
  T sums[kMostRows];
  for (int i = 0; i < count; i++) {
    const int k = left == adjoint ? i : count - 1 - i, behind = n - k;
    T *const at = v + int64_t{k} * n + k, diagonal = *at;
    const T scale = adjoint ? conj(tau[k]) : tau[k];
    *at = 1;
    if (left) {
      reflect(scale, at, other + k, behind, columns, rows);
    } else {
      T* const first = other + int64_t{k} * rows;
      std::fill_n(sums, rows, T(0));
      for (int j = 0; j < behind; j++) axpy<true>(at[j], first + int64_t{j} * rows, sums, rows);
      for (int j = 0; j < behind; j++)
        axpy<true>(-product(scale, conj(at[j])), sums, first + int64_t{j} * rows, rows);
    }
    *at = diagonal;
  }
}

template <class T>
const SmallQr<T>& table() {
  static constexpr SmallQr<T> kTable{factor<T>, generate<T>, multiply<T>};
  return kTable;
}
const SmallQr<float>& float_table() { return table<float>(); }
const SmallQr<double>& double_table() { return table<double>(); }
const SmallQr<std::complex<float>>& complex_float_table() { return table<std::complex<float>>(); }
const SmallQr<std::complex<double>>& complex_double_table() {
  return table<std::complex<double>>();
}

}  // namespace
}  // namespace taeda::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace taeda::cpu {
#define TD_SMALL_QR(T, table)             \
  HWY_EXPORT(table);                      \
  template <>                             \
  const SmallQr<T>& small_qr() {          \
    return HWY_DYNAMIC_DISPATCH(table)(); \
  }
TD_SMALL_QR(float, float_table)
TD_SMALL_QR(double, double_table)
TD_SMALL_QR(std::complex<float>, complex_float_table)
TD_SMALL_QR(std::complex<double>, complex_double_table)
#undef TD_SMALL_QR
}  // namespace taeda::cpu
#endif
