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

// (I - tau v v^T) applied to `columns` columns behind v's.
template <class T>
TD_FN void reflect(T tau, const T* v, T* a, int n, int columns, int64_t stride) {
  for (int j = 0; j < columns; j++, a += stride) axpy<true>(-tau * dot(v, a, n), v, a, n);
}

template <class T>
void factor(T* a, int rows, int columns, T* tau) {
  for (int k = 0; k < std::min(rows, columns); k++) {
    T* const v = a + int64_t{k} * rows + k;
    const int n = rows - k;
    const T rest = norm(v + 1, n - 1), first = v[0];
    tau[k] = 0;
    if (rest == 0) continue;
    const T beta = -std::copysign(std::hypot(first, rest), first);
    tau[k] = (beta - first) / beta;
    const T inverse = 1 / (first - beta);
    if (std::isfinite(inverse)) {
      axpy<false>(inverse, v + 1, v + 1, n - 1);
    } else {
      for (int i = 1; i < n; i++) v[i] /= first - beta;
    }
    v[0] = 1;
    reflect(tau[k], v, v + rows, n, columns - k - 1, rows);
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
    v[0] = 1 - tau[k];
    std::fill(column, v, T(0));
  }
}

void factor_float(float* a, int m, int n, float* tau) { factor(a, m, n, tau); }
void factor_double(double* a, int m, int n, double* tau) { factor(a, m, n, tau); }
void generate_float(float* a, int m, int n, int k, const float* tau) { generate(a, m, n, k, tau); }
void generate_double(double* a, int m, int n, int k, const double* tau) {
  generate(a, m, n, k, tau);
}

}  // namespace
}  // namespace taeda::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace taeda::cpu {
HWY_EXPORT(factor_float);
HWY_EXPORT(factor_double);
HWY_EXPORT(generate_float);
HWY_EXPORT(generate_double);
void small_qr_factor(float* a, int rows, int columns, float* tau) {
  HWY_DYNAMIC_DISPATCH(factor_float)(a, rows, columns, tau);
}
void small_qr_factor(double* a, int rows, int columns, double* tau) {
  HWY_DYNAMIC_DISPATCH(factor_double)(a, rows, columns, tau);
}
void small_qr_generate(float* a, int rows, int columns, int reflectors, const float* tau) {
  HWY_DYNAMIC_DISPATCH(generate_float)(a, rows, columns, reflectors, tau);
}
void small_qr_generate(double* a, int rows, int columns, int reflectors, const double* tau) {
  HWY_DYNAMIC_DISPATCH(generate_double)(a, rows, columns, reflectors, tau);
}
}  // namespace taeda::cpu
#endif
