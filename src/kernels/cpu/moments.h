// Mean and variance of a row in pieces: two passes over each piece in the cache, pieces joined by
// Chan's formula (Chan, Golub and LeVeque 1979): as exact as two passes over the whole.
#pragma once

#include "kernels/cpu/rows.h"

namespace taeda::cpu {

struct Moments {
  double count = 0, mean = 0, m2 = 0;  // m2: sum of squared distances from the mean
};

inline void join(Moments& a, double count, double mean, double m2) {
  if (count == 0) return;
  const double total = a.count + count, delta = mean - a.mean;
  a.m2 += m2 + delta * delta * (a.count * count / total);
  a.mean += delta * (count / total);
  a.count = total;
}

// Takes in a piece of n > 0 elements.
template <class T>
void add_piece(Moments& a, const T* x, int64_t n) {
  const double count = static_cast<double>(n);
  const T center = row_table<T>().sum(x, n) / static_cast<T>(n);
  T first, second;
  row_table<T>().moments(x, center, n, &first, &second);
  join(a, count, center + static_cast<double>(first) / count,
       static_cast<double>(second) -
           static_cast<double>(first) * static_cast<double>(first) / count);
}

}  // namespace taeda::cpu
