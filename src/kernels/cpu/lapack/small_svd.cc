// Rotations of two columns each until all are orthogonal: their lengths are the singular values
// [Hestenes 1958; Golub and Van Loan, "Matrix Computations", 8.6.3]. In double for float, too.
#include "kernels/cpu/lapack/small_svd.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

namespace taeda::cpu {
namespace {

struct Columns {
  double at[kSmallSvd][kSmallSvd];
  int count, rows;

  // Makes two columns orthogonal; whether they were.
  bool turn(int p, int q, double negligible) {
    double* const x = at[p];
    double* const y = at[q];
    double xx = 0, yy = 0, xy = 0;
    for (int i = 0; i < rows; i++) {
      xx += x[i] * x[i];
      yy += y[i] * y[i];
      xy += x[i] * y[i];
    }
    if (xy * xy <= negligible * negligible * xx * yy) return true;
    const double half = (yy - xx) / (2 * xy);
    const double tangent = std::copysign(1 / (std::abs(half) + std::sqrt(1 + half * half)), half);
    const double c = 1 / std::sqrt(1 + tangent * tangent), s = c * tangent;
    for (int i = 0; i < rows; i++) {
      const double old = x[i];
      x[i] = c * old - s * y[i];
      y[i] = s * old + c * y[i];
    }
    return false;
  }
  bool make_orthogonal(double negligible) {
    constexpr int kMostSweeps = 30;
    for (int sweep = 0; sweep < kMostSweeps; sweep++) {
      bool done = true;
      for (int p = 0; p < count; p++)
        for (int q = p + 1; q < count; q++) done &= turn(p, q, negligible);
      if (done) return true;
    }
    return false;
  }
};

template <class T>
bool singular_values(const T* a, int lines, int length, T* values) {
  Columns columns;
  const bool turned = lines > length;  // no more columns than rows
  columns.count = std::min(lines, length);
  columns.rows = std::max(lines, length);
  double most = 0;
  for (int i = 0; i < lines * length; i++) most = std::max(most, std::abs(double{a[i]}));
  const int exponent = most > 0 ? std::ilogb(most) : 0;  // squares stay in the range of double
  for (int j = 0; j < columns.count; j++)
    for (int i = 0; i < columns.rows; i++)
      columns.at[j][i] =
          std::ldexp(double{turned ? a[i * length + j] : a[j * length + i]}, -exponent);
  if (!columns.make_orthogonal(sizeof(T) == 4 ? 1e-9 : 1e-15)) return false;
  for (int j = 0; j < columns.count; j++) {
    double square = 0;
    for (int i = 0; i < columns.rows; i++) square += columns.at[j][i] * columns.at[j][i];
    values[j] = static_cast<T>(std::ldexp(std::sqrt(square), exponent));
  }
  std::sort(values, values + columns.count, std::greater<T>());
  return true;
}

}  // namespace

bool small_singular_values(const float* a, int lines, int length, float* values) {
  return singular_values(a, lines, length, values);
}
bool small_singular_values(const double* a, int lines, int length, double* values) {
  return singular_values(a, lines, length, values);
}

}  // namespace taeda::cpu
