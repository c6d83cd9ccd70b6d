// Least squares by QR decompositions, for matrices that have full rank beyond doubt.
#include <algorithm>
#include <cmath>

#include "kernels/cpu/gemm/gemm.h"
#include "kernels/cpu/lapack/qr_routines.h"
#include "kernels/cpu/lapack/rows.h"

namespace taeda::cpu {
namespace {

template <class T>
void conjugate(T* x, int64_t n) {
  if constexpr (kComplexLapack<T>)
    for (int64_t i = 0; i < n; i++) x[i] = std::conj(x[i]);
}

template <class T>
double norm(const T* x, int64_t n) {
  double squares = 0;
  for (int64_t i = 0; i < n; i++) squares += std::norm(x[i]);
  return std::sqrt(squares);
}

// The largest singular value of an n x n matrix, or a little less, by the power method.
template <class T>
double spectral_norm(const Matrix& a, int64_t n) {
  constexpr int kSteps = 8;
  const Scratch<T> v(n), w(n);
  for (int64_t i = 0; i < n; i++) v[i] = T((i % 2 ? 1.0 : -1.0) / static_cast<double>(1 + i % 7));
  double growth = 0;
  for (int step = 0; step < kSteps; step++) {
    const double size = norm(v.data(), n);
    for (int64_t i = 0; i < n; i++) v[i] /= size;
    gemm(kDTypeOf<T>, {w.data(), n, 1, 1, 1}, a, {v.data(), n, 1, 1, 1});
    growth = norm(w.data(), n);
    conjugate(w.data(), n);  // A^H w is the conjugate of A^T conj(w)
    gemm(kDTypeOf<T>, {v.data(), n, 1, 1, 1}, transposed(a), {w.data(), n, 1, 1, 1});
    conjugate(v.data(), n);
  }
  return growth;
}

// Whether the least singular value of a triangle is certainly more than `tolerance` times the
// largest, by bounds from above or, where these are too far from them, estimates. In double
// precision, for fewer types.
template <class T>
bool has_full_rank(const Rows<T>& triangle, int64_t n, double tolerance) {
  const Rows<T> inverse(n, n);
  inverse.set_identity();
  const Strided<T> x = inverse.strided(), r = triangle.strided();
  // Columns of the inverse have zeros below their diagonals: by panels, what is above these.
  constexpr int64_t kPanel = 64;
  for (int64_t first = 0; first < n; first += kPanel) {
    const int64_t width = std::min(kPanel, n - first);
    solve_triangle({true, false}, first + width, Strided<const T>{r.data, r.row, r.column},
                   x.from(0, first), width);
  }
  double squares = 0, inverse_squares = 0;
  for (int64_t i = 0; i < n; i++) {
    const double row = norm(triangle.row(i), n), inverse_row = norm(inverse.row(i), n);
    squares += row * row;
    inverse_squares += inverse_row * inverse_row;
  }
  const double condition = std::sqrt(squares) * std::sqrt(inverse_squares);
  if (!std::isfinite(condition)) return false;
  constexpr double kDoubt = 4;  // times what the power method finds
  return condition * tolerance < 1 || (condition * tolerance < static_cast<double>(n) &&
                                       kDoubt * spectral_norm<T>(r.sized(n, n), n) *
                                               spectral_norm<T>(x.sized(n, n), n) * tolerance <
                                           1);
}

template <class T>
bool has_full_rank(const ColumnMajor<T>& r, int64_t n, double tolerance) {
  using Wide = std::conditional_t<kComplexLapack<T>, std::complex<double>, double>;
  const Rows<Wide> triangle(n, n);
  triangle.set_identity();
  for (int64_t j = 0; j < n; j++)
    for (int64_t i = 0; i <= j; i++) triangle.row(i)[j] = Wide(r.data()[j * r.rows() + i]);
  return has_full_rank(triangle, n, tolerance);
}

}  // namespace

// X of least norm among those that minimise |A X - B|, by A = Q R or, of wide matrices, A^H = Q R.
// A status of 1: A may have singular values of no more than `tolerance` times the largest, and
// there is no X.
void lapack_lstsq(const View& x, const View& info, const View& a, const View& b, double tolerance) {
  for_lapack_type(a, [&]<class T>(T) {
    static const QrRoutines<T> routines;
    const Matrices m(a), right(b);
    const bool wide = m.rows < m.columns;
    const int rows = std::max(m.rows, m.columns), n = std::min(m.rows, m.columns),
              columns = right.columns;
    const MultiplyQ<T> multiply(true, !wide);
    over_batch(m.count, rows, [&](int64_t i) {
      const ColumnMajor<T> q(rows, n), c(rows, columns);
      const Scratch<T> tau(n);
      const T* const from = a.as<T>() + i * m.each;
      if (!wide) {
        q.load(m, a, i);
      } else if (!m.by_columns) {
        copy_elements(q.data(), from, m.each);
      } else {
        transpose_lines(q.data(), rows, from, n, rows, n);
      }
      if (wide) conjugate(q.data(), m.each);
      routines.factor(q, rows, n, tau);
      info.as<int>()[i] = !has_full_rank(q, n, tolerance);
      if (info.as<int>()[i] != 0 || columns == 0) return;

      const Rows<T> y(n, columns);
      if (wide) {  // R^H Y = B, X = Q Y
        y.load(right, b, i);
        for (int r = 0; r < n; r++) conjugate(y.row(r), columns);
        solve_triangle({false, false}, n, Strided<const T>{q.data(), rows, 1}, y.strided(),
                       y.whole_columns());
        for (int r = 0; r < n; r++) conjugate(y.row(r), columns);
        std::fill_n(c.data(), c.numel(), T());
        y.store_columns(c.data(), rows);
        multiply(q, tau, n, c, columns);
        return c.store(x, columns, i);
      }
      c.load(right, b, i);  // R X = Q^H B
      multiply(q, tau, n, c, columns);
      y.load_columns(c.data(), rows);
      solve_triangle({true, false}, n, Strided<const T>{q.data(), 1, rows}, y.strided(),
                     y.whole_columns());
      y.store_columns(x.as<T>() + i * n * columns);
    });
  });
}

}  // namespace taeda::cpu
