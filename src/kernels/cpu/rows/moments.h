// Mean and variance of a row in chunks, combined by Chan's formula (Chan, Golub and LeVeque 1979):
// as exact as two passes over the whole.
//
// A chunk mostly takes one pass: squares of distances from the mean of its first elements lose
// nothing to speak of to cancellation where these are like the others. Where they are not, a second
// pass over the chunk in the cache takes distances from the mean that the first one found.
#pragma once

#include <algorithm>
#include <cmath>

#include "kernels/cpu/rows/rows.h"

namespace taeda::cpu {

struct Moments {
  double count = 0, mean = 0, m2 = 0;  // m2: sum of squared distances from the mean
};

inline void combine_moments(Moments& a, double count, double mean, double m2) {
  if (count == 0) return;
  const double total = a.count + count, delta = mean - a.mean;
  a.m2 +=
      m2 + delta * (a.count * count / total) * delta;  // 0 for an empty `a`, however large delta
  a.mean += delta * (count / total);
  a.count = total;
}

// Whether a sum of squares of T may have lost what double holds: squares that overflow or vanish.
// Zero is one of equals, or of what vanished. A double that overflows is infinite, and no
// correction may be subtracted from it.
template <class T>
bool is_out_of_range(T squares) {
  if (std::is_same_v<T, double>) return !std::isfinite(squares);
  return !(squares > T(1e-30) && squares < T(1e37));
}

// n elements `stride` apart, in double.
template <class T>
void add_wide(Moments& a, const T* x, int64_t n, int64_t stride) {
  double mean = 0, m2 = 0;
  for (int64_t i = 0; i < n; i++) mean += static_cast<double>(x[i * stride]);
  mean /= static_cast<double>(n);
  for (int64_t i = 0; i < n; i++) {
    const double d = static_cast<double>(x[i * stride]) - mean;
    m2 += d * d;
  }
  combine_moments(a, static_cast<double>(n), mean, m2);
}

// Takes in a chunk of n > 0 elements.
template <class T>
void add_chunk(Moments& a, const T* x, int64_t n) {
  const double count = static_cast<double>(n);
  const int64_t k = std::min<int64_t>(64, n);
  T center = static_cast<T>(row_table<T>().sum(x, k) / static_cast<double>(k));
  T first, second;
  row_table<T>().moments(x, center, n, &first, &second);
  if (4 * first * first > second * static_cast<T>(n)) {
    center += first / static_cast<T>(n);
    row_table<T>().moments(x, center, n, &first, &second);
  }
  const bool equal = second == 0 && std::all_of(x, x + n, [x](T v) { return v == *x; });
  if (is_out_of_range(second) && !equal) return add_wide(a, x, n, 1);
  combine_moments(a, count, center + static_cast<double>(first) / count,
                  static_cast<double>(second) -
                      static_cast<double>(first) * static_cast<double>(first) / count);
}

}  // namespace taeda::cpu
